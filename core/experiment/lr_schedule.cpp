// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr double kRounding = 1e-12;  // 0.07 × 100 is 7.000000000000001, and means 7

/// Which shapes each option is for; others would not notice it.
const std::map<std::string, std::vector<std::string>> kShapesWith{
    {"size", {"step"}},
    {"gamma", {"step", "multistep"}},
    {"milestones", {"multistep"}},
    {"power", {"poly"}},
    {"constant", {"constant_then_linear"}},
    {"end_lr", {"poly", "cosine", "linear", "constant_then_linear"}}};

/// Refuses options that the shape does not have, if they are written with another value than their
/// default: a resolved file has them all.
void refuse_others(Options& options, const std::string& shape) {
  for (const OptionInfo& info : options.declared()) {
    const auto shapes = kShapesWith.find(info.name);
    if (shapes == kShapesWith.end() || !options.given(info.name) ||
        std::ranges::count(shapes->second, shape) > 0 ||
        *options.resolved().find(info.name) == info.fallback)
      continue;
    options.problem("name",
                    concat("is ", shape, ", with which ", info.name,
                           " has no effect; leave it out, or take ", join(shapes->second, " or ")));
  }
}

}  // namespace

LrSchedule::LrSchedule(Options& options)
    : name_(options.choice(
          "name",
          {"constant", "step", "multistep", "poly", "cosine", "linear", "constant_then_linear"},
          "constant", "Shape of the learning rate over time.")),
      per_step_(options.choice("per", {"epoch", "step"}, "epoch",
                               "Unit of time t: the rate changes between epochs, or between steps "
                               "(mini-batches).") == "step"),
      size_(options.integer("size", 30, "step: units of time between two drops.", kPositive)),
      gamma_(options.number("gamma", 0.1, "step, multistep: factor of each drop of the rate.",
                            kNotNegative)),
      milestones_(options.integers("milestones", {},
                                   "multistep: times from which on a drop holds, in units.",
                                   kNotNegative)),
      power_(options.number("power", 1,
                            "poly: exponent of 1 − t/T, where T is the length of the training.",
                            kNotNegative)),
      constant_(options.number("constant", 0.5,
                               "constant_then_linear: share of the training in which the rate "
                               "stays as it is, before it falls on a line to end_lr.",
                               kFraction)),
      end_lr_(options.number(
          "end_lr", 0,
          "poly, cosine, linear, constant_then_linear: rate at the end of the training.",
          kNotNegative)) {
  refuse_others(options, name_);
  if (name_ == "multistep" && !options.given("milestones"))
    options.problem("name",
                    "is multistep, and there are no milestones; expected the times of the drops, "
                    "such as milestones: [10, 15]");
  Options warmup = options.section("warmup", "Linear rise of the rate at the beginning.");
  warmup_length_ =
      warmup.integer("length", 0, "Length of the rise in units of time; 0 = none.", kNotNegative);
  warmup_share_ = warmup.number("share", 0,
                                "Instead of length: length of the rise as a share of the training, "
                                "rounded up to whole units of time; 0 = none.",
                                kFraction);
  if (warmup_share_ > 0 && warmup_length_ > 0)
    warmup.problem("share", concat("is ", warmup_share_, ", and length is ", warmup_length_,
                                   "; expected one of the two"));
  warmup_start_ =
      warmup.number("start", 0, "Fraction of the rate at which the rise begins.", kFraction);
  decays_after_warmup_ =
      warmup.choice(
          "then", {"go_on", "begin"}, "go_on",
          "How rates that fall to end_lr continue: go_on counts t from the beginning of the "
          "training, begin from the end of the rise, as Hugging Face's schedulers do.") == "begin";
  warmup.finish();
}

double LrSchedule::at(double lr, std::int64_t t, std::int64_t total) const {
  const bool shifted = decays_after_warmup_ && name_ != "step" && name_ != "multistep";
  const std::int64_t length =
      warmup_share_ > 0 ? static_cast<std::int64_t>(std::ceil(
                              warmup_share_ * static_cast<double>(total) * (1 - kRounding)))
                        : warmup_length_;
  const std::int64_t shift = shifted ? length : 0;
  const double rate = decayed(lr, std::max<std::int64_t>(t - shift, 0), total - shift);
  if (t >= length) return rate;
  const double risen = static_cast<double>(t) / static_cast<double>(length);
  return rate * (warmup_start_ + (1 - warmup_start_) * risen);
}

double LrSchedule::decayed(double lr, std::int64_t t, std::int64_t total) const {
  const double time = static_cast<double>(t),
               all = static_cast<double>(std::max<std::int64_t>(total, 1));
  if (name_ == "step") return lr * std::pow(gamma_, static_cast<double>(t / size_));
  if (name_ == "multistep")
    return lr * std::pow(gamma_, static_cast<double>(std::ranges::count_if(
                                     milestones_, [t](std::int64_t m) { return m <= t; })));
  if (name_ == "poly") return end_lr_ + (lr - end_lr_) * std::pow(1 - time / all, power_);
  if (name_ == "cosine")
    return end_lr_ + (lr - end_lr_) * (1 + std::cos(std::numbers::pi * time / all)) / 2;
  if (name_ == "linear") return lr + (end_lr_ - lr) * time / all;
  if (name_ == "constant_then_linear" && time > constant_ * all)
    return lr + (end_lr_ - lr) * (time - constant_ * all) / (all - constant_ * all);
  return lr;
}

}  // namespace pipewright
