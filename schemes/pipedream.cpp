// SPDX-License-Identifier: Apache-2.0
// PipeDream (Narayanan et al., 2019): 1F1B over mini-batches without flush, an update after every
// backward. Weight stashing computes the backward with the weights of its forward, D = N−1−k
// versions old. Without it (SpecTrain's "vanilla MP") the backward uses the newest weights and the
// activations of older ones. Vertical sync uses one version on all stages: the one stage 0 reads.
// With at most n micro-batches in flight a stage is min(n, N−k) − 1 versions late; AMDP (2026) has
// n = 2 in each of its two directions.
#include <algorithm>

#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

class PipeDream final : public Scheme {
 public:
  explicit PipeDream(Options& options)
      : weight_stashing_(
            options.flag("weight_stashing", true,
                         "Whether a backward computes with the weights of its forward; "
                         "false: with the newest ones, which SpecTrain's tables call "
                         "vanilla MP.")),
        vertical_sync_(
            options.flag("vertical_sync", false,
                         "Whether the forwards of all N stages use the version that stage "
                         "0 used: max(0, i−N+1) for mini-batch i.")),
        refill_(options.flag(
            "refill", true,
            "Whether the queue of stashed versions is filled anew when the pipe has been drained. "
            "false: a defect of the authors' code: the first D backwards after a drain read what "
            "the queue still holds, the weights before the last D, D−1, … 1 updates, and not those "
            "of their forwards.")),
        in_flight_(read_in_flight(options)) {
    if (!refill_ && (!weight_stashing_ || vertical_sync_))
      options.problem("refill",
                      concat("is false, which needs ",
                             vertical_sync_ ? "vertical_sync: false" : "weight_stashing: true"));
    if (!refill_ && in_flight_ != kAll)
      options.problem("in_flight", concat("is ", in_flight_,
                                          ", which needs refill: true; the authors' queue holds "
                                          "the versions of all"));
  }

  Schedule schedule(const PipelineShape& shape) const override {
    if (!refill_) return unfilled_stash_schedule(shape);
    const WeightRule of_stage_zero = [&](const PassPlace& pass) {
      const int forwarded = pass.minibatch * pass.microbatches + pass.microbatch;
      return Weights::of_version(std::max(0, forwarded - late(pass.stages)) / pass.microbatches);
    };
    return pipeline_schedule(shape, {.flush = false, .in_flight = in_flight_},
                             vertical_sync_ ? of_stage_zero : latest_weights,
                             weight_stashing_ ? forward_weights : latest_weights);
  }
  bool repeats() const override { return true; }

 private:
  static constexpr int kAll = 0;
  static constexpr int kMost = 1'000'000;

  static int read_in_flight(Options& options) {
    const Value most = options.any(
        "in_flight", Value::of("all"),
        "Most micro-batches that a stage has forwarded and whose backward is still to come: a "
        "whole number of at least 1, or all, as many as fill the pipe. Fewer leave workers idle, "
        "and weights are that much less stale.");
    if (most.is(Value::Kind::Text) && most.text == "all") return kAll;
    if (most.is(Value::Kind::Integer) && most.integer >= 1 && most.integer <= kMost)
      return static_cast<int>(most.integer);
    options.problem("in_flight",
                    concat("is ", most.shown(), "; expected a whole number of at least 1, or all"));
    return kAll;
  }

  /// How many micro-batches stage 0 forwards before its first backward.
  int late(int stages) const {
    return in_flight_ == kAll ? stages - 1 : std::min(stages, in_flight_) - 1;
  }

  bool weight_stashing_;
  bool vertical_sync_;
  bool refill_;
  int in_flight_;
};

}  // namespace

PIPEWRIGHT_SCHEME(pipedream, PipeDream,
                  "PipeDream: asynchronous 1F1B with weight stashing (Narayanan et al., 2019).")

}  // namespace pipewright
