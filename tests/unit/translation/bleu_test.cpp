// SPDX-License-Identifier: Apache-2.0
// BLEU and its tokenizers against sacreBLEU 2.6.0 on made-up sentences.
#include "core/translation/bleu.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Lines = std::vector<std::string>;

const Lines kSaid{"The cat sat on the mat, didn't it?",
                  "A 3.5-metre pole (red) costs 1,000 euros.",
                  "Zwei Männer gehen über die Straße – „schnell“!",
                  "<skipped>Tom &amp; Jerry&quot;s &lt;house&gt; is big.",
                  "ÄPFEL und BIRNEN: 50% günstiger…",
                  "foo  bar\tbaz\u00a0qux  ",
                  "Im Jahr 2014.",
                  "€5 + $7 = ½ dozen ★ naïve e-mail well-known 10-20"};
const Lines kMeant{"The cat sat on a mat, did it not?",
                   "A pole of 3.5 metres (red) costs 1,000 euro.",
                   "Zwei Männer laufen über die Straße – „sehr schnell“!",
                   "Tom & Jerry's <house> is very big.",
                   "Äpfel und Birnen: um 50% günstiger…",
                   "foo bar baz qux",
                   "Im Jahre 2014.",
                   "€5 + $7 = ½ dozen ★ naïve email well-known 10-20"};

TEST(Bleu, IsThatOfSacrebleu) {
  struct Case {
    BleuOptions options;
    double score;
  };
  for (const Case& c :
       {Case{{"13a", false}, 44.96562105422216}, Case{{"13a", true}, 48.27573482441019},
        Case{{"intl", false}, 38.61705152783525}, Case{{"intl", true}, 41.225072261831365},
        Case{{"none", false}, 38.54992608771799}, Case{{"none", true}, 40.70638882265896}})
    EXPECT_NEAR(corpus_bleu(kSaid, kMeant, c.options), c.score, tolerance::kBleu)
        << c.options.tokenizer << c.options.lowercase;
}

Lines tokens(const BleuOptions& options) {
  Lines all;
  for (const std::string& line : kSaid) all.push_back(bleu_tokens(line, options));
  return all;
}

TEST(Bleu, TokenizesAsMteval13a) {
  EXPECT_EQ(
      tokens({"13a", true}),
      (Lines{
          "the cat sat on the mat , didn't it ?", "a 3.5 - metre pole ( red ) costs 1,000 euros .",
          "zwei männer gehen über die straße – „schnell“ !", "tom & jerry \" s < house > is big .",
          "äpfel und birnen : 50 % günstiger…", "foo bar baz qux", "im jahr 2014 .",
          "€5 + $ 7 = ½ dozen ★ naïve e-mail well-known 10 - 20"}));
}

TEST(Bleu, TokenizesByUnicodesClasses) {
  EXPECT_EQ(tokens({"intl", true}),
            (Lines{"the cat sat on the mat , didn ' t it ?",
                   "a 3.5 - metre pole ( red ) costs 1,000 euros .",
                   "zwei männer gehen über die straße – „ schnell “ !",
                   "< skipped > tom & amp ; jerry & quot ; s & lt ; house & gt ; is big .",
                   "äpfel und birnen : 50 % günstiger …", "foo bar baz qux", "im jahr 2014.",
                   "€ 5 + $ 7 = ½ dozen ★ naïve e - mail well - known 10-20"}));
}

TEST(Bleu, OfShortOrWrongTranslations) {
  const auto bleu = [](const std::string& said, const std::string& meant) {
    return corpus_bleu(Lines{said}, Lines{meant}, {});
  };
  EXPECT_EQ(bleu("a b", "a b"), 0) << "no run of four tokens";
  EXPECT_NEAR(bleu("a b c d", "a b c d"), 100, tolerance::kBleu);
  EXPECT_NEAR(bleu("a b c d e x", "a y b z c d"), 19.304869754804482, tolerance::kBleu);
  EXPECT_EQ(bleu("q", "a y b z c d"), 0);
  EXPECT_EQ(bleu("", "a"), 0);
  EXPECT_EQ(corpus_bleu(Lines{}, Lines{}, {}), 0);
}

TEST(Bleu, TakesBytesThatAreNoTextAsNone) {
  EXPECT_NO_THROW(bleu_tokens("a \xff\xfe b,", {"intl", true}));
}

}  // namespace
}  // namespace pipewright::test
