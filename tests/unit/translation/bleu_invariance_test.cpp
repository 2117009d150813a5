// SPDX-License-Identifier: Apache-2.0
// What must not matter to BLEU does not: the order of the sentences, and how often the whole corpus
// is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/translation/bleu.h"

namespace pipewright::test {
namespace {

using Sentences = std::vector<std::string>;

const Sentences kTranslations{"a man rides a red bicycle down the street .", "two dogs run .",
                              "the woman is reading a book , or is she ?",
                              "people wait for the train in the old station"};
const Sentences kReferences{
    "a man is riding a red bicycle down a street .", "two dogs are running over the grass .",
    "the woman is reading a book , is she ?", "people wait for a train in the old station ."};

double bleu(const Sentences& translations, const Sentences& references) {
  return corpus_bleu(translations, references, {});
}

TEST(BleuInvariance, HasTheOrderOfPairsAsNoPart) {
  const double plain = bleu(kTranslations, kReferences);
  EXPECT_GT(plain, 20);
  EXPECT_LT(plain, 80);
  std::vector<std::size_t> order{0, 1, 2, 3};
  while (std::ranges::next_permutation(order).found) {
    Sentences translations, references;
    for (const std::size_t i : order) {
      translations.push_back(kTranslations[i]);
      references.push_back(kReferences[i]);
    }
    EXPECT_EQ(bleu(translations, references), plain);
  }
}

TEST(BleuInvariance, OfACorpusThatIsThereTwiceIsThatOfTheCorpus) {
  Sentences translations = kTranslations, references = kReferences;
  translations.insert(translations.end(), kTranslations.begin(), kTranslations.end());
  references.insert(references.end(), kReferences.begin(), kReferences.end());
  EXPECT_EQ(bleu(translations, references), bleu(kTranslations, kReferences));
}

TEST(BleuInvariance, OfTheReferencesThemselvesIsAHundred) {
  EXPECT_DOUBLE_EQ(bleu(kReferences, kReferences), 100);
}

}  // namespace
}  // namespace pipewright::test
