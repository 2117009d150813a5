/// A stage: a run of consecutive layers, an optional auxiliary head, its parameter versions,
/// optimizer state, buffers, and what its forwards keep for their backwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/stage/deferred_statistics.h"
#include "core/stage/layer.h"
#include "core/stage/loss.h"
#include "core/stage/optimizer.h"
#include "core/stage/split_backward.h"
#include "core/stage/weight_store.h"

namespace pipewright {

/// What a stage replica is made of. The pointers are shared by all replicas and outlive them.
struct StageParts {
  int index = 0;
  bool last = false;  ///< has the model's own loss
  std::vector<LayerPtr> layers;
  LayerPtr head;              ///< auxiliary; null without one
  std::vector<int> copies;    ///< leaving_copies() of the stage; empty: everything leaves once
  at::TensorOptions options;  ///< precision and device
  const Optimizer* optimizer = nullptr;
  const Loss* loss = nullptr;
  bool predicts = false;                   ///< a schedule will ask for predictions
  bool keep_gradient = false;              ///< … by PredictionRule::Lookahead
  std::optional<double> drift_decay = {};  ///< … by PredictionRule::Drift
  RunningStatistics running_statistics = RunningStatistics::PerMicrobatch;
};

/// One replica of a stage. Used by one thread at a time.
class Stage {
 public:
  /// Allocates and initialises parameters and buffers.
  Stage(StageParts parts, std::uint64_t seed);
  Stage(const Stage&) = delete;  // the leaves' hooks know where it is
  Stage& operator=(const Stage&) = delete;

  int index() const { return parts_.index; }
  bool predicts() const { return parts_.predicts; }
  at::Device device() const { return parts_.options.device(); }
  const FlatLayout& layout() const { return layout_; }
  WeightStore& weights() { return weights_; }
  OptimizerState& optimizer_state() { return state_; }
  /// (full name, tensor) of every buffer, in layer order.
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;
  /// (full name, view of the latest version) of every parameter, in layer order, the head's last.
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  /// Both, layer by layer.
  std::vector<std::pair<std::string, at::Tensor>> named_state() const;

  /// Makes the weights a pass computes with the live ones, predicting them first if they are named
  /// for the first time. `lr`: of the stage's next update.
  void use(const ActionWeights& weights, const std::vector<PredictionRule>& rules, double lr);

  enum class Keep : std::uint8_t { Graph, Inputs };
  /// Runs the layers. In training keeps the graph under `id` until the last backward of `id`, or
  /// only the inputs, and is recomputed before the first. Inputs are fresh tensors without graph;
  /// with `input_gradient` a backward will be asked for theirs. Returns contiguous tensors without
  /// graph.
  Tensors forward(int id, Tensors inputs, const Pass& pass, bool input_gradient,
                  Keep keep = Keep::Graph);
  /// Runs the forward `id` of that pass again, which kept its inputs only, for its graph. Its
  /// weights must be in use again.
  void recompute(int id, const Pass& pass);
  /// The loss of a kept forward of the last stage: a scalar on the stage's device, without graph,
  /// as all losses here. Where the forward is recomputed, so is this: backwards start from it.
  at::Tensor final_loss(int id, const at::Tensor& target);
  /// The loss of outputs that keep no graph.
  at::Tensor loss_of(const Tensors& outputs, const at::Tensor& target) const;
  /// Forward, loss and backward of the auxiliary head on the kept forward's output, detached. Adds
  /// the head's gradient × factor; with `output_gradient` keeps that of the stage's output for the
  /// backwards of this loss. Returns the loss.
  at::Tensor head(int id, const at::Tensor& target, const Pass& pass, double factor,
                  bool output_gradient);

  struct BackwardRequest {
    bool own_loss = false;        ///< starts from this stage's loss, not from `gradients`
    Tensors gradients;            ///< of the outputs that have one, but for those in `straight` …
    Tensors straight;             ///< … which stand together; undefined: none …
    std::size_t behind = 0;       ///< … with so many outputs behind them
    double factor = 1;            ///< of the model's own loss
    bool learn = true;            ///< add the weights' gradient …
    double scale = 1;             ///< … times this
    bool input_gradient = false;  ///< return the inputs' gradient
    bool last = true;             ///< no further backward of `id`: free its graph
    /// Instead of `learn`: the loss whose backward_weight() follows; what that needs is kept.
    std::optional<int> half_of = {};
  };
  /// Returns a gradient for each input, undefined for integers, if they are asked for.
  Tensors backward(int id, BackwardRequest request);
  /// The other half of a backward() with `half_of = loss`: adds the weights' gradient × scale.
  void backward_weight(int id, int loss, double scale);

  /// The weight gradients added since the last update, per layout entry (undefined: none yet).
  std::vector<at::Tensor>& gradients() { return gradients_; }
  /// A prediction of the version an update makes; `lr`: of the update after it.
  struct Ahead {
    WeightKey key;
    PredictionRule rule;
    double lr = 0;
  };
  /// Applies them to the latest version and forgets them; what use() would predict next is made in
  /// the same pass if it is asked for.
  void update(bool in_place, double lr, const std::optional<Ahead>& ahead = {});

 private:
  struct Kept {
    int id = -1;
    Keep keep = Keep::Graph;  ///< what there is now
    bool input_gradient = false;
    Tensors inputs, outputs;
    at::Tensor loss;  ///< of the last stage
    at::Tensor head_gradient;
    std::vector<std::pair<int, WeightHalf>> halves;  ///< to come, by loss
    bool walked = false;                             ///< no further backward of its layers
  };
  struct Roots {
    std::vector<at::Tensor> outputs, gradients;
  };
  struct Placed {
    LayerPtr layer;
    std::size_t first_parameter = 0, parameters = 0, first_buffer = 0, buffers = 0;
  };
  void place(const LayerPtr& layer);
  Tensors run(const Placed& placed, const Tensors& inputs, Pass pass);
  Tensors run_layers(const Tensors& inputs, const Pass& pass);
  Tensors leaving(const Tensors& values) const;
  void compute(Kept& slot, const Pass& pass);
  Kept& kept(int id);
  void finish_walk(Kept& slot);
  Roots roots_of(const Kept& slot, BackwardRequest& request) const;
  Prediction add_prediction(const Ahead& ahead);
  void make(const Ahead& ahead);
  void hook_leaves();
  at::Tensor add_gradient(std::size_t parameter, const at::Tensor& gradient);

  StageParts parts_;
  FlatLayout layout_;
  std::vector<Placed> layers_;  ///< the head last, if any
  std::vector<std::string> buffer_names_;
  std::vector<at::Tensor> buffers_;
  std::optional<DeferredStatistics> deferred_;
  std::size_t main_parameters_ = 0;  ///< without the head's
  WeightStore weights_;
  OptimizerState state_;
  std::vector<Kept> kept_;
  std::vector<at::Tensor> gradients_;
  std::vector<int> gradient_parts_;       ///< terms added so far, per parameter
  std::optional<double> gradient_scale_;  ///< of the pass that adds; none: no pass does
};

using NamedShapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// Parameters of the layers, and of the head if any: full names and shapes, in order.
NamedShapes parameter_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);
/// Buffers too: what Stage::named_state() of such a stage has, from declarations alone.
NamedShapes state_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);

}  // namespace pipewright
