// SPDX-License-Identifier: Apache-2.0
// A probe: the largest magnitude among a stage's gradients of an update, before any gradient rule.
#include <ATen/ATen.h>

#include <algorithm>

#include "core/probes/measures.h"
#include "core/probes/probe.h"

namespace pipewright {
namespace {

class LargestAtStage final : public StageProbe {
 public:
  void updates(const Update& update, const Finding& found) override {
    if (!update.measured) return;
    double largest = 0;
    for (const at::Tensor& gradient : unruled_gradients(update.stage))
      if (gradient.defined()) largest = std::max(largest, gradient.abs().max().item<double>());
    found("gradient", largest);
  }
};

class Largest final : public Probe {
 public:
  using Probe::Probe;
  std::vector<Quantity> quantities() const override {
    return {{"gradient", "the largest magnitude among the gradients of an update, before any gradient rule"}};
  }
  std::unique_ptr<StageProbe> at(const ProbedStage& /*stage*/) const override {
    return std::make_unique<LargestAtStage>();
  }
};

PIPEWRIGHT_PROBE(largest, Largest, "The largest magnitude among a stage's gradients.")

}  // namespace
}  // namespace pipewright
