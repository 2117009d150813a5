// SPDX-License-Identifier: Apache-2.0
// Delayed SGD: staleness without a pipeline's schedule. One mini-batch is in flight; the gradient
// of mini-batch i is computed at W^(max(0, i−d)), in forward and backward, and applied to W^(i).
// With d_k = N−1−k it is PipeDream. Delays are given, or drawn from a law for each mini-batch:
//  fixed      d = mean
//  uniform    d uniform on 0, 1, … 2·mean
//  geometric  P(d) ∝ qᵈ, q = mean/(1 + mean), on 0, 1, … ⌈10·(1 + mean)⌉, beyond which versions
//             would be kept for gradients that hardly ever come. What is cut off has a probability
//             below e⁻¹⁰ and lowers the mean by less than 0.05 %.
// A draw is a function of the seed, the number of the mini-batch in the training and, with
// `per_stage`, the stage.
#include <algorithm>
#include <cmath>
#include <span>
#include <variant>

#include "core/base/random.h"
#include "core/base/wording.h"
#include "core/config/options.h"
#include "core/schedule/builders.h"

namespace pipewright {
namespace {

constexpr double kLongestDelay = 1e6;  // updates

/// A law from which the delay of each mini-batch is drawn.
class DelayLaw {
 public:
  explicit DelayLaw(Options options)
      : kind_(options.choice("law", {"fixed", "uniform", "geometric"}, "geometric",
                             "Law of the delays: fixed; uniform on 0 … 2·mean; geometric.")),
        mean_(options.number("mean", 1, "Mean delay in updates.", {0, kLongestDelay})),
        seed_(options.integer("seed", 1, "Seed of the delays, which train.seed does not change.",
                              kNotNegative)),
        per_stage_(options.flag("per_stage", false,
                                "Whether each stage has delays of its own; otherwise all stages "
                                "have the same.")) {
    if (kind_ == "fixed" && std::fmod(mean_, 1) != 0)
      options.problem("mean", concat("is ", mean_, "; expected a whole number for the law fixed"));
    if (kind_ == "uniform" && std::fmod(mean_, 0.5) != 0)
      options.problem("mean", concat("is ", mean_,
                                     "; expected a multiple of 0.5 for the law "
                                     "uniform, whose largest delay is twice the mean"));
    options.finish();
  }

  std::string text() const { return concat(kind_, ", mean ", mean_); }
  bool is_fixed() const { return kind_ == "fixed"; }

  /// The delay of a mini-batch, counted from the beginning of the training.
  int delay(int stage, int minibatch) const {
    if (is_fixed()) return static_cast<int>(mean_);
    const std::uint64_t own = per_stage_ ? 1 + static_cast<std::uint64_t>(stage) : 0;
    const RandomStream stream(static_cast<std::uint64_t>(seed_), "delayed_sgd", own);
    const auto draw = static_cast<std::uint64_t>(minibatch);
    if (kind_ == "uniform")
      return static_cast<int>(stream.below(draw, static_cast<std::uint64_t>(2 * mean_) + 1));
    return geometric(stream.uniform(draw));
  }

 private:
  /// The delay d with 1 − qᵈ ≤ u·(1 − q^(b+1)) < 1 − q^(d+1), for u in [0, 1) and the bound b.
  int geometric(double u) const {
    if (mean_ == 0) return 0;
    const double bound = std::ceil(10 * (1 + mean_)), log_q = -std::log1p(1 / mean_);
    const double within = -std::expm1((bound + 1) * log_q);
    const double delay = std::floor(std::log1p(-u * within) / log_q);
    return static_cast<int>(std::clamp(delay, 0.0, bound));
  }

  std::string kind_;
  double mean_;
  std::int64_t seed_;
  bool per_stage_;
};

/// Delays that are given: one for all stages, or one per stage.
struct GivenDelays {
  std::vector<int> each;
  bool one_for_all = true;
};

class DelayedSgd final : public Scheme {
 public:
  explicit DelayedSgd(Options& options) : delays_(read(options)) {}

  Schedule schedule(const PipelineShape& shape) const override {
    const auto* const given = std::get_if<GivenDelays>(&delays_);
    if (given != nullptr && !given->one_for_all &&
        static_cast<int>(given->each.size()) != shape.stages)
      throw Error(ErrorKind::Experiment,
                  concat("scheme.delay has ", counted(given->each.size(), "number"), " for ",
                         counted(shape.stages, "stage"), "; expected one per stage"));
    const WeightRule delayed = [&](const PassPlace& pass) {
      const int delay = delay_of(pass.stage, shape.first_minibatch + pass.minibatch);
      return Weights::of_version(std::max(0, pass.minibatch - delay));
    };
    return pipeline_schedule(shape, {.one_at_a_time = true}, delayed, forward_weights);
  }
  bool repeats() const override {
    const auto* const law = std::get_if<DelayLaw>(&delays_);
    return law == nullptr || law->is_fixed();
  }

  std::string remark() const override {
    if (repeats()) return {};
    return concat("delayed_sgd: each mini-batch's delay is drawn (",
                  std::get<DelayLaw>(delays_).text(),
                  "); a staleness that is shown is that of the last mini-batch shown");
  }

 private:
  using Delays = std::variant<GivenDelays, DelayLaw>;

  int delay_of(int stage, int minibatch) const {
    if (const auto* const law = std::get_if<DelayLaw>(&delays_))
      return law->delay(stage, minibatch);
    const GivenDelays& given = std::get<GivenDelays>(delays_);
    return given.one_for_all ? given.each[0] : given.each[static_cast<std::size_t>(stage)];
  }

  static Delays read(Options& options) {
    constexpr const char* kHelp =
        "Delay in updates, from the weights that a gradient is computed with to those that it is "
        "applied to: one number for all stages; one per stage: [3, 2, 1, 0]; or a law from which "
        "the delay of each mini-batch is drawn: {law: geometric, mean: 3, seed: 1, per_stage: "
        "false}. Laws are fixed; uniform on 0 … 2·mean; geometric, cut off at 10·(1 + mean). With "
        "per_stage the stages have delays of their own.";
    const Value given = options.any("delay", Value::of(1), kHelp);
    if (given.is(Value::Kind::Mapping)) return DelayLaw(options.section("delay", kHelp));
    return read_given(options, given);
  }

  static GivenDelays read_given(Options& options, const Value& given) {
    GivenDelays delays;
    const bool list = given.is(Value::Kind::Sequence);
    const std::span<const Value> listed =
        list ? std::span<const Value>(given.items) : std::span(&given, 1);
    for (const Value& delay : listed) {
      const bool fits = delay.is(Value::Kind::Integer) && delay.integer >= 0 &&
                        delay.integer <= static_cast<std::int64_t>(kLongestDelay);
      if (fits) {
        delays.each.push_back(static_cast<int>(delay.integer));
        continue;
      }
      options.problem(list ? concat("delay[", &delay - given.items.data(), "]") : "delay",
                      concat("is ", delay.shown(), "; expected a whole number from 0 to 1,000,000",
                             list ? "" : ", a list with one per stage, or {law: …, mean: …}"));
    }
    if (list && given.items.empty())
      options.problem("delay", "is an empty list; expected a whole number per stage");
    delays.one_for_all = !list || delays.each.size() != listed.size() || delays.each.empty();
    if (delays.each.empty()) delays.each = {0};
    return delays;
  }

  Delays delays_;
};

}  // namespace

PIPEWRIGHT_SCHEME(delayed_sgd, DelayedSgd,
                  "Delayed SGD: gradients of weights d updates old, without a pipeline's schedule.")

}  // namespace pipewright
