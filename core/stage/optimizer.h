/// Optimizers over a stage's flat parameters: one fused pass makes the next version, and the same
/// state predicts versions to come by the optimizer's own rule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/config/options.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Where each parameter lies in a flat tensor: starts are multiples of 64 bytes, gaps hold zeros.
struct FlatLayout {
  struct Entry {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in elements
    std::int64_t size = 0;    ///< in elements
  };
  std::vector<Entry> entries;
  std::int64_t size = 0;  ///< of the whole, in elements
};

/// What an optimizer remembers of one stage replica: flat tensors shaped like the parameters.
struct OptimizerState {
  std::int64_t steps = 0;
  std::vector<at::Tensor> slots;  ///< as Optimizer::slot_names()
  at::Tensor last_gradient;       ///< with weight decay; kept only for PredictionRule::Lookahead
  at::Tensor drift;               ///< δ, kept only for PredictionRule::Drift
};

struct OptimizerStep {
  const FlatLayout& layout;
  std::span<const at::Tensor> gradients;  ///< per entry; undefined = leave that parameter alone
  const at::Tensor& weights;              ///< flat, version n
  at::Tensor& next;                       ///< flat, becomes version n+1; may be `weights` itself
  OptimizerState& state;
  double lr = 0;
  /// Called with elements [begin, end) of `next` once they are made, while a cache still holds
  /// them; by several intra-op threads. All elements but those of gaps are named once.
  std::function<void(std::int64_t begin, std::int64_t end)> made = nullptr;
};

struct Prediction {
  const at::Tensor& weights;  ///< flat, version n
  at::Tensor& ahead;          ///< flat, becomes the prediction of version n + steps
  const OptimizerState& state;
  PredictionRule rule;  ///< any but Drift, which no optimizer decides
  int steps = 0;        ///< may be negative
  double lr = 0;
};

/// Elements [begin, end) of flat tensors.
struct FlatRange {
  std::int64_t begin = 0, end = 0;
};

/// Mathematics of PyTorch 2.11's optimizers. Stateless: one object serves all stages and threads.
class Optimizer {
 public:
  explicit Optimizer(Options& options, double default_lr);
  virtual ~Optimizer() = default;

  double lr() const { return lr_; }
  /// Flat tensors it keeps; `predicts`: a schedule will ask for predictions, so what only they
  /// need (the last step of plain SGD) is kept too.
  virtual std::vector<std::string> slot_names(bool predicts) const = 0;
  /// One step, one pass over memory; state.steps grows by 1.
  virtual void step(const OptimizerStep& step) const = 0;
  /// ahead = weights − steps·lr·Δ by the rule; nothing is predicted before the first step. Only
  /// these elements are read and written.
  virtual void predict(const Prediction& prediction, const FlatRange& range) const = 0;

 private:
  double lr_;
};

/// All of it.
void predict(const Optimizer& optimizer, const Prediction& prediction);
/// step(), then predict() of what it made, in one pass over memory on the CPU; the same bits. The
/// prediction's weights are the step's `next`, its state the step's, its gaps are left alone.
void step_and_predict(const Optimizer& optimizer, OptimizerStep step, const Prediction& prediction);

/// Zero state for a stage of that layout.
OptimizerState fresh_state(const Optimizer& optimizer, const FlatLayout& layout,
                           const at::TensorOptions& options, bool predicts, bool keep_gradient);

}  // namespace pipewright

#define PIPEWRIGHT_OPTIMIZER(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Optimizer, name, Type, summary)
