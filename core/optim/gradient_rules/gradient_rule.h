// SPDX-License-Identifier: Apache-2.0
/// Gradient rules: what is done to the gradient of a stage between its last backward and the update
/// that applies it, and to the update. A training has a list of them, which is applied in its
/// order.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/optim/optimizer.h"
#include "core/tensors/named_tensors.h"

namespace pipewright {

/// The gradient of a stage that an update is about to apply. Tensors that are flat have the layout
/// of the parameters.
struct RuledGradient {
  const FlatLayout& layout;
  /// Per parameter, in its shape and in the weights' number format; undefined: there is none. It is
  /// summed over micro-batches and replicas, has no loss scale and no weight decay. A rule puts
  /// other tensors in their place and writes into none.
  std::vector<at::Tensor>& gradients;
  const at::Tensor& weights;  ///< flat, the version that the update is applied to
  /// Flat, the weights that the forwards of the mini-batch have read, for rules that
  /// compare_versions(): the same tensor as `weights` if nothing has changed since.
  const at::Tensor& read;
  std::span<const at::Tensor> slots = {};  ///< flat, one per name in GradientRule::slot_names()
  std::int64_t updates = 0;                ///< of this stage before this one
  /// For rules that are over_model(): the square of the norm of the whole model's gradient.
  double model_square = 0;
  double peak_lr = 0;  ///< the optimizer's learning rate, which schedules lower

  bool is_stale() const { return !read.is_same(weights); }
};

/// An update that a stage has made. Those that were skipped are none.
struct WeightStep {
  const at::Tensor& before;  ///< flat
  /// Flat. A rule that corrects_steps() writes into it, and those behind it see that.
  const at::Tensor& after;
  std::span<const at::Tensor> slots = {};
  std::int64_t updates = 0;  ///< of this stage before this one
  double lr = 0;
};

/// A rule is stateless, as an optimizer is: one object serves all stages and threads.
class GradientRule {
 public:
  virtual ~GradientRule() = default;
  /// Names of the flat tensors that it keeps at every stage, zeros at first.
  virtual std::vector<std::string> slot_names() const { return {}; }
  /// Whether it asks for RuledGradient::read. Every stage then keeps what its forwards have read
  /// until the update that applies their gradient.
  virtual bool compares_versions() const { return false; }
  /// Whether it asks for RuledGradient::model_square. An update then waits for the gradients of all
  /// stages of its mini-batch, which only schedules that flush after every one can have.
  virtual bool over_model() const { return false; }
  /// Whether it wants stepped().
  virtual bool follows_steps() const { return false; }
  /// Whether stepped() changes WeightStep::after. Copies in a narrow format and predictions are
  /// then made behind it, and not in the pass over memory that makes the step.
  virtual bool corrects_steps() const { return false; }
  /// Whether lr_factor() is ever another number than 1.
  virtual bool changes_lr() const { return false; }
  /// The factor of the learning rate of an update whose gradient is so many updates old.
  virtual double lr_factor(int staleness) const {
    static_cast<void>(staleness);
    return 1;
  }
  virtual void apply(const RuledGradient& /*gradient*/) const {}
  virtual void stepped(const WeightStep& /*step*/) const {}
  /// A remark printed by `describe` and `check`, for instance on what is unverified.
  virtual std::string remark() const { return {}; }
};

/// A rule of an experiment, with its registered name.
struct NamedGradientRule {
  std::string name;
  std::shared_ptr<const GradientRule> rule;
};

/// The rules of a training at one stage, with what they keep there.
class StageGradientRules {
 public:
  StageGradientRules(std::vector<NamedGradientRule> rules, std::int64_t size,
                     const at::TensorOptions& options);

  bool empty() const { return placed_.empty(); }
  bool follow_steps() const;
  bool correct_steps() const;
  bool over_model() const;
  /// Applies the rules in their order: those before the first one over_model(), or that one and all
  /// behind it. Without such a rule, all are before it. The slots of `gradient` are set here.
  enum class Part : std::uint8_t { BeforeModel, FromModel };
  void apply(Part part, const RuledGradient& gradient) const;
  /// Shows the step to the rules that follow steps, in their order. Its slots are set here.
  void stepped(const WeightStep& step) const;
  /// ("gap_aware.step_square", flat tensor) of all that is kept.
  NamedTensors slots() const;

 private:
  struct Placed {
    NamedGradientRule named;
    std::vector<at::Tensor> slots;
  };
  std::vector<Placed> placed_;
};

/// How many tensors as large as the weights the rules keep.
int slots_of(const std::vector<NamedGradientRule>& rules);

}  // namespace pipewright

#define PIPEWRIGHT_GRADIENT_RULE(name, Type, summary)  \
  PIPEWRIGHT_STAMP(gradient_rule, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::GradientRule, name, Type, summary)
