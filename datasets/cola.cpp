// SPDX-License-Identifier: Apache-2.0
/// CoLA, the Corpus of Linguistic Acceptability (Warstadt, Singh and Bowman, "Neural Network
/// Acceptability Judgments", 2018), in GLUE's files: source, label, the authors' mark, sentence.
#include "datasets/texts/glue.h"

namespace pipewright {
namespace {

class Cola final : public GlueDataset {
 public:
  explicit Cola(Options& options)
      : GlueDataset(options, {.name = "CoLA",
                              .columns = 4,
                              .first = 3,
                              .label = 1,
                              .labels = {"0", "1"},
                              .metrics = {"matthews"}}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(cola, Cola, "CoLA of GLUE: is a sentence acceptable? 8,551 + 1,043, BPE tokens.")

}  // namespace pipewright
