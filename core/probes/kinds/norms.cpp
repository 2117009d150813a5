// SPDX-License-Identifier: Apache-2.0
// norms: lengths of a stage's weights before an update, of its gradient before any gradient rule,
// such as clipping, and of the change of the weights: |W|, |g|, |W' − W|. A stage keeps a copy of
// its weights during the update.
#include <cmath>

#include "core/probes/measures.h"
#include "core/probes/probe.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class NormsAtStage final : public StageProbe {
 public:
  void updates(const Update& update, const Finding& found) override {
    if (!update.measured) return;
    before_ = update.stage.weights().latest().clone();
    found("weights", std::sqrt(squares_of(before_)));
    found("gradient", std::sqrt(squares_of(unruled_gradients(update.stage))));
  }
  void updated(const Update& update, const Finding& found) override {
    if (!update.measured) return;
    found("update", std::sqrt(squares_between(update.stage.weights().latest(), before_)));
    before_.reset();
  }

 private:
  at::Tensor before_;
};

class Norms final : public Probe {
 public:
  using Probe::Probe;
  std::vector<Quantity> quantities() const override {
    return {{"weights, gradient, update",
             "lengths of the weights before an update, of its gradient before gradient rules such "
             "as clip, and of the change that it makes"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage&) const override {
    return std::make_unique<NormsAtStage>();
  }
};

}  // namespace

PIPEWRIGHT_PROBE(norms, Norms, "Lengths of weights, gradients and updates of each stage.")

}  // namespace pipewright
