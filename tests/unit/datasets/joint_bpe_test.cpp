// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/joint_bpe.h"

#include "datasets/texts/punctuation.h"
#include "datasets/texts/text_file.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

WordCounts counted(std::string_view text) {
  WordCounts counts;
  for (const std::string_view word : words_of(text)) counts.add(word);
  return counts;
}

std::string text_of(const std::vector<SymbolPair>& merges) {
  std::string text;
  for (const auto& [first, second] : merges) text += first + " " + second + "|";
  return text;
}

constexpr std::string_view kText =
    "low low low low low lower lower newest newest newest newest newest newest widest widest "
    "widest\naaaa aaaaa aaa baaab aaaa aaaaaa\nß Straße Maße große Größe Grüße Füße ßß\n"
    "abab abab ababab bcbc abcbcb abc abc\n";

// By subword-nmt 0.3.8 from the same text.
constexpr std::string_view kMerges =
    "a a|s t</w>|e st</w>|l o|a b|ß e</w>|w est</w>|n e|ne west</w>|lo w</w>|aa a|w i|"
    "wi d|wid est</w>|ab a|aba b</w>|aaa a</w>|ü ße</w>|w e|we r</w>|lo wer</w>|c b|"
    "ab c</w>|aa a</w>|a ße</w>|G r|";

TEST(JointBpe, LearnsWhatSubwordNmtLearns) {
  EXPECT_EQ(text_of(learn_merges(counted(kText).in_order(), 1000)), kMerges);
  EXPECT_EQ(text_of(learn_merges(counted(kText).in_order(), 2)), "a a|s t</w>|");
  EXPECT_EQ(text_of(learn_merges({}, 10)), "");
  EXPECT_EQ(text_of(learn_merges(counted("a b c a").in_order(), 10)), "");
}

TEST(JointBpe, CutsWordsAsSubwordNmtDoes) {
  const JointBpe bpe(learn_merges(counted(kText).in_order(), 1000));
  std::vector<std::string> parts;
  for (const std::string_view word :
       words_of("lowest newer aaaaaaa Straßen Füßchen ababc widewide x 東京"))
    for (const std::string& part : bpe.parts(word)) parts.push_back(part);
  EXPECT_EQ(join(parts, " "),
            "lo@@ west ne@@ wer aa@@ aa@@ aaa S@@ t@@ r@@ a@@ ß@@ e@@ n F@@ ü@@ "
            "ß@@ c@@ h@@ e@@ n ab@@ abc wid@@ e@@ wid@@ e x 東@@ 京");
}

TEST(JointBpe, ReadsAndRefusesFilesOfMerges) {
  const fixtures::TemporaryFolder folder;
  put(folder / "codes", "#version: 0.2\ns t</w>\ne st</w>\n");
  EXPECT_EQ(text_of(read_merges(folder / "codes")), "s t</w>|e st</w>|");
  const auto refusal = [&](const std::string& content) {
    put(folder / "codes", content);
    return error_of([&] { read_merges(folder / "codes"); });
  };
  EXPECT_TRUE(contains(refusal("s t\n"), "codes: line 1 must be '#version: 0.2'"));
  EXPECT_TRUE(contains(refusal("#version: 0.2\ns t\ns\n"), "line 3 must have two symbols"));
  EXPECT_TRUE(contains(refusal("#version: 0.2\ns  t\n"), "line 2 must have two symbols"));
  EXPECT_TRUE(contains(error_of([&] { read_merges(folder / "no"); }), "no: no such file"));
}

// By the tokenizer 13a of sacrebleu 2.6.
TEST(PunctuationSplit, IsThatOfMteval) {
  EXPECT_EQ(punctuation_split("Two young, White males are outside near many bushes."),
            "Two young , White males are outside near many bushes .");
  EXPECT_EQ(punctuation_split("A man's 3.50$ (blue) hat-trick, 1,000 times... \"ok\"?"),
            "A man's 3.50 $ ( blue ) hat-trick , 1,000 times . . . \" ok \" ?");
  EXPECT_EQ(punctuation_split("Zwei Männer – „groß“ & 5-mal; 10-jährige a.b.c."),
            "Zwei Männer – „groß“ & 5 - mal ; 10 - jährige a . b . c .");
  EXPECT_EQ(punctuation_split("  .,5.x,7-8 [x]{y}~|@/\\^_` "),
            ". ,5 . x , 7 - 8 [ x ] { y } ~ | @ / \\ ^ _ `");
  EXPECT_EQ(punctuation_split("stone &amp; tile &quot;a&lt;b&quot;"), "stone & tile \" a < b \"");
  EXPECT_EQ(punctuation_split("Nummer\u00a0 28\u2003a"), "Nummer 28 a");
  EXPECT_EQ(punctuation_split(""), "");
}

}  // namespace
}  // namespace pipewright
