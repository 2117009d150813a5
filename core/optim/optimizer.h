// SPDX-License-Identifier: Apache-2.0
/// Optimizers over the flat parameters of a stage. One fused pass over memory makes the next
/// version; the same state predicts future versions by the optimizer's own rule.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/schedule/linear_rule.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Places of the parameters in a flat tensor. Each starts at a multiple of 64 bytes; the gaps hold
/// zeros.
struct FlatLayout {
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;     ///< in elements
    std::int64_t size = 0;       ///< in elements
    bool exact = false;          ///< ParameterSpec::exact
    bool channels_last = false;  ///< the order of a convolution's weight in memory

    /// The parameter as a view of a flat tensor.
    at::Tensor view(const at::Tensor& flat) const;
    /// A tensor of the parameter's shape in the order of a flat one, [size]; a view if it has that
    /// order already.
    at::Tensor in_order(const at::Tensor& tensor) const;
  };
  std::vector<Entry> entries;
  std::int64_t size = 0;  ///< of the whole tensor with its gaps, in elements
};

struct PartState;

/// Optimizer state of one stage replica: flat tensors with the layout of the parameters, and
/// tables, which have shapes of their own.
struct OptimizerState {
  std::int64_t steps = 0;
  std::vector<at::Tensor> slots;  ///< one per name in Optimizer::slot_names()
  /// [Optimizer::tables()][parameter of the layout]; undefined where the parameter has none.
  std::vector<std::vector<at::Tensor>> tables;
  at::Tensor last_gradient;  ///< including weight decay; kept only for PredictionRule::Lookahead
  at::Tensor drift;          ///< δ, kept only for PredictionRule::Drift
  /// Of an optimizer of groups: each parameter's own state, which shares the tensors above.
  std::vector<PartState> parts;
};

/// Called for elements [begin, end) of a flat tensor as soon as they are written, while they are
/// still cached. Several intra-op threads call it; each element outside the gaps is passed once.
using OnElements = std::function<void(std::int64_t begin, std::int64_t end)>;

struct OptimizerStep {
  const FlatLayout& layout;
  /// Per entry; undefined: the parameter stays as it is. One may have fewer bits than the weights.
  std::span<const at::Tensor> gradients;
  const at::Tensor& weights;  ///< flat, version n
  at::Tensor& next;           ///< flat, receives version n + 1; may be `weights` itself
  OptimizerState& state;
  double lr = 0;
  OnElements made = nullptr;  ///< called for elements of `next`
  double loss_scale = 1;      ///< of gradients in float16, which are divided by it
  int staleness = 0;          ///< ActionWeights::staleness of the update
};

struct Prediction {
  const at::Tensor& weights;  ///< flat, version n
  at::Tensor& ahead;          ///< flat, receives the prediction of version n + steps
  const OptimizerState& state;
  PredictionRule rule;  ///< any but Drift, which is the same for all optimizers
  int steps = 0;        ///< may be negative
  double lr = 0;
  OnElements made = nullptr;  ///< called for elements of `ahead`
  /// With PredictionRule::each_lr, of each step; empty: all have `lr`.
  std::span<const double> rates = {};

  double rate_of(int step) const {  ///< counted from 0
    return rates.empty() ? lr : rates[static_cast<std::size_t>(step)];
  }
  /// The sum of the rates; negative for steps back.
  double distance() const;
};

/// Elements [begin, end) of flat tensors.
struct FlatRange {
  std::int64_t begin = 0, end = 0;
};

/// A kind of state with one tensor for some parameters, not as large as they are.
struct StateTable {
  std::string name;
  /// The tensor's shape for a parameter, if it has one.
  std::function<std::optional<std::vector<std::int64_t>>(const FlatLayout::Entry&)> shape_for;
};

class Optimizer;

/// The parameters that an optimizer steps besides others, by the names that weights files have.
struct OptimizerGroup {
  std::string option;              ///< where it is in an experiment file: "optimizer.groups[0]"
  std::vector<std::string> match;  ///< globs, of which one must match
  std::shared_ptr<const Optimizer> optimizer;
};

/// An update rule, equal to that of PyTorch 2.11's optimizer of the same name or, where PyTorch has
/// none, to its authors'. It is stateless: one object serves all stages and threads, but where
/// of_stage() makes others.
class Optimizer {
 public:
  explicit Optimizer(Options& options, double default_lr);
  explicit Optimizer(double lr) : lr_(lr) {}
  virtual ~Optimizer() = default;

  double lr() const { return lr_; }
  /// Names of the flat tensors in its state. With `predicts` (a schedule asks for predictions)
  /// these include tensors that only predictions need, such as the last gradient of plain SGD.
  virtual std::vector<std::string> slot_names(bool predicts) const = 0;
  /// The state besides these. Its functions may not outlive the optimizer.
  virtual std::vector<StateTable> tables([[maybe_unused]] bool predicts) const { return {}; }
  /// The groups of parameters that have optimizers of their own; the first that matches a parameter
  /// has it. None: it steps all itself.
  virtual std::span<const OptimizerGroup> groups() const { return {}; }
  /// Layers that its options name, and the option that does; a layer that the model does not have
  /// is the experiment's mistake.
  struct NamedLayers {
    std::string option;
    std::vector<std::string> layers;
  };
  virtual NamedLayers named_layers() const { return {}; }
  /// The optimizer of a stage whose gradients are `delay` updates late, in a pipeline of so many
  /// stages. Null, whatever the delay: this one serves all stages. It has the state of this one.
  virtual std::unique_ptr<Optimizer> of_stage(int delay, int stages) const {
    static_cast<void>(delay), static_cast<void>(stages);
    return nullptr;
  }
  /// The divisors of steps, element by element, as in P = √v̂ + ε: flat, with any values in the
  /// gaps. Undefined: the optimizer divides by nothing, or has not stepped yet.
  virtual at::Tensor preconditioner(const OptimizerState& state) const {
    static_cast<void>(state);
    return {};
  }
  /// How many tensors of its state predict() reads; by default all that predictions keep.
  virtual int slots_predicted_from() const { return static_cast<int>(slot_names(true).size()); }
  /// Makes one update in one pass over memory; state.steps grows by 1.
  virtual void step(const OptimizerStep& step) const = 0;
  /// Whether it knows rules of this kind. By an unknown kind it would predict as by its own rule
  /// (Kind::Optimizer), so an experiment whose scheme asks for one is refused.
  virtual bool predicts_by(PredictionRule::Kind kind) const {
    return kind == PredictionRule::Kind::Optimizer || kind == PredictionRule::Kind::Drift;
  }
  /// Writes ahead = weights − steps·lr·Δ, where Δ follows from the rule; before the first update,
  /// ahead = weights. Reads and writes only the elements of `range`.
  virtual void predict(const Prediction& prediction, const FlatRange& range) const = 0;
  /// The same rule as a linear recurrence on a quadratic loss, in the steady state and with its
  /// preconditioner frozen, from which stability follows. Empty for an optimizer that is none.
  virtual std::optional<LinearRule> linear() const { return {}; }
  /// A remark printed by `describe` and `check`, for instance on what is unverified.
  virtual std::string remark() const { return {}; }

 private:
  double lr_;
};

/// The state of one parameter of several, and what steps it.
struct PartState {
  const Optimizer* optimizer = nullptr;
  FlatLayout layout;        ///< of the parameter alone
  std::int64_t offset = 0;  ///< of the parameter in the flat tensors of all
  OptimizerState state;
};

/// How many numbers the tables have for parameters of that layout.
std::int64_t numbers_in_tables(const Optimizer& optimizer, const FlatLayout& layout, bool predicts);

/// Predicts all elements, and calls `prediction.made` for them.
void predict(const Optimizer& optimizer, const Prediction& prediction);
/// Does step() and then predict() from its result, bit for bit, in a single pass over memory on the
/// CPU, where it also calls `step.made` and `prediction.made`. `prediction.weights` must be
/// `step.next` and both must share their state. The gaps of the prediction are not written on the
/// CPU.
void step_and_predict(const Optimizer& optimizer, OptimizerStep step, const Prediction& prediction);

/// Makes the zero state of a stage with that layout.
OptimizerState fresh_state(const Optimizer& optimizer, const FlatLayout& layout,
                           const at::TensorOptions& options, bool predicts, bool keep_gradient);

}  // namespace pipewright

#define PIPEWRIGHT_OPTIMIZER(name, Type, summary)  \
  PIPEWRIGHT_STAMP(optimizer, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Optimizer, name, Type, summary)
