// SPDX-License-Identifier: Apache-2.0
/// RTE, Recognizing Textual Entailment (four challenges from Dagan et al., 2006, to Bentivogli et
/// al., 2009), in GLUE's files: does the first text entail the second?
#include "datasets/texts/glue.h"

namespace pipewright {
namespace {

class Rte final : public GlueDataset {
 public:
  explicit Rte(Options& options)
      : GlueDataset(options, {.name = "RTE",
                              .header = "index\tsentence1\tsentence2\tlabel",
                              .columns = 4,
                              .first = 1,
                              .second = 2,
                              .label = 3,
                              .labels = {"entailment", "not_entailment"}}) {}
};

}  // namespace

PIPEWRIGHT_DATASET(rte, Rte, "RTE of GLUE: does one text entail another? 2,490 + 277, BPE tokens.")

}  // namespace pipewright
