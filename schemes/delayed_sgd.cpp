// SPDX-License-Identifier: Apache-2.0
// Delayed SGD: staleness without a pipeline's schedule. One mini-batch is in flight; the gradient
// of mini-batch i is computed at W^(max(0, i−d)), in forward and backward, and applied to W^(i).
// With d_k = N−1−k it is PipeDream.
#include <algorithm>
#include <span>

#include "core/base/wording.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class DelayedSgd final : public Scheme {
 public:
  explicit DelayedSgd(Options& options) {
    const Value given =
        options.any("delay", Value::of(1),
                    "Delay in updates, from the weights that a gradient is computed with to those "
                    "that it is applied to: one number for all stages, or one per stage: [3, 2, 1, "
                    "0].");
    const bool list = given.is(Value::Kind::Sequence);
    const std::span<const Value> each =
        list ? std::span<const Value>(given.items) : std::span(&given, 1);
    for (const Value& delay : each) {
      const bool fits =
          delay.is(Value::Kind::Integer) && delay.integer >= 0 && delay.integer <= 1'000'000;
      if (fits) {
        delays_.push_back(static_cast<int>(delay.integer));
        continue;
      }
      options.problem(list ? concat("delay[", &delay - given.items.data(), "]") : "delay",
                      concat("is ", delay.shown(), "; expected a whole number from 0 to 1,000,000",
                             list ? "" : ", or a list with one per stage"));
    }
    if (list && given.items.empty())
      options.problem("delay", "is an empty list; expected a whole number per stage");
    one_for_all_ = !list || delays_.size() != each.size() || delays_.empty();
    if (delays_.empty()) delays_ = {0};
  }

  Schedule schedule(const PipelineShape& shape) const override {
    if (!one_for_all_ && static_cast<int>(delays_.size()) != shape.stages)
      throw Error(ErrorKind::Experiment,
                  concat("scheme.delay has ", counted(delays_.size(), "number"), " for ",
                         counted(shape.stages, "stage"), "; expected one per stage"));
    const WeightRule delayed = [&](const PassPlace& pass) {
      const int delay = one_for_all_ ? delays_[0] : delays_[static_cast<std::size_t>(pass.stage)];
      return Weights::of_version(std::max(0, pass.minibatch - delay));
    };
    return pipeline_schedule(shape, {.one_at_a_time = true}, delayed, forward_weights);
  }
  bool repeats() const override { return true; }

 private:
  std::vector<int> delays_;
  bool one_for_all_ = true;
};

}  // namespace

PIPEWRIGHT_SCHEME(delayed_sgd, DelayedSgd,
                  "Delayed SGD: gradients of weights d updates old, without a pipeline's schedule.")

}  // namespace pipewright
