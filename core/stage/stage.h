// SPDX-License-Identifier: Apache-2.0
/// Stages. A stage is a run of consecutive layers with an optional auxiliary head, its parameter
/// versions, optimizer state, buffers, and what its forwards keep for their backwards.
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
#include "core/stage/precision.h"
#include "core/stage/split_backward.h"
#include "core/stage/weight_store.h"

namespace pipewright {

/// What a stage replica is made of. All replicas share the layers, the optimizer and the loss,
/// which must outlive them.
struct StageParts {
  int index = 0;
  bool last = false;  ///< the model's last stage, which computes its own loss
  std::vector<LayerPtr> layers;
  LayerPtr head;              ///< auxiliary head; null without one
  std::vector<int> copies;    ///< leaving_copies() of this stage; empty: each output is sent once
  at::TensorOptions options;  ///< device, and format of the weights
  /// Format of activations, in mixed precision; then that of `options` is the wide one. Float16 has
  /// its gradients scaled.
  std::optional<at::ScalarType> narrow = {};
  /// Whether images, and the weights of their convolutions, are in channels-last memory
  /// (memory_format.h).
  bool channels_last = false;
  const Optimizer* optimizer = nullptr;
  const Loss* loss = nullptr;
  bool predicts = false;                   ///< a schedule asks for predictions
  bool keep_gradient = false;              ///< for predictions by PredictionRule::Lookahead
  std::optional<double> drift_decay = {};  ///< for predictions by PredictionRule::Drift
  RunningStatistics running_statistics = RunningStatistics::PerMicrobatch;
};

/// One replica of a stage, used by one thread at a time. In mixed precision inputs, outputs and
/// their gradients are in the narrow format; losses and the last stage's outputs are in the wide
/// one. In float16 all gradients of inputs and outputs are multiplied by the stage's loss scale.
class Stage : private GradientSums {
 public:
  /// Allocates and initialises parameters and buffers.
  Stage(StageParts parts, std::uint64_t seed);
  Stage(const Stage&) = delete;  // the hooks on its leaves hold `this`
  Stage& operator=(const Stage&) = delete;

  int index() const { return parts_.index; }
  bool predicts() const { return parts_.predicts; }
  at::Device device() const { return parts_.options.device(); }
  const FlatLayout& layout() const { return layout_; }
  WeightStore& weights() { return weights_; }
  OptimizerState& optimizer_state() { return state_; }
  /// In float16 the stage's scale; otherwise none.
  std::optional<LossScale>& loss_scale() { return loss_scale_; }
  /// Updates so far, with those that loss scaling has skipped.
  std::int64_t updates() const { return state_.steps + (loss_scale_ ? loss_scale_->skipped : 0); }
  /// (full name, tensor) of every buffer, in layer order.
  std::vector<std::pair<std::string, at::Tensor>> named_buffers() const;
  /// (full name, view of the latest version) of every parameter, in layer order; the head's last.
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() const;
  /// Parameters and buffers, layer by layer; the head's last.
  std::vector<std::pair<std::string, at::Tensor>> named_state() const;

  /// Installs the weights that a pass computes with; predicts them first if `weights.makes`. `lr`
  /// is the learning rate of the stage's next update.
  void use(const ActionWeights& weights, const std::vector<PredictionRule>& rules, double lr);

  enum class Keep : std::uint8_t { Graph, Inputs };
  /// Runs the layers. In training it keeps, under `id` and until the last backward of `id`, the
  /// graph or, with Keep::Inputs, only the inputs; recompute() must then precede the first
  /// backward. `inputs` are fresh tensors without graph; `input_gradient` says that a backward will
  /// compute their gradients. Returns tensors without graph, contiguous or, if images, channels
  /// last; on the last stage none in training.
  Tensors forward(int id, Tensors inputs, const Pass& pass, bool input_gradient,
                  Keep keep = Keep::Graph);
  /// Runs forward `id`, which kept only its inputs, again to obtain its graph. The forward's
  /// weights must be installed and `pass` must be the forward's.
  void recompute(int id, const Pass& pass);
  /// Computes the loss of a kept forward on the last stage. Returns a scalar on the stage's device,
  /// without graph, as all losses here. After recompute() it must be called again, because
  /// backwards start from the loss.
  at::Tensor final_loss(int id, const at::Tensor& target);
  /// Computes the loss of outputs without recording a graph.
  at::Tensor loss_of(const Tensors& outputs, const at::Tensor& target) const;
  /// Runs forward, loss and backward of the auxiliary head on the detached output of a kept
  /// forward. Adds factor × the gradients of the head's weights. With `output_gradient` it keeps
  /// the gradient of the stage's output for the backwards of this loss. Returns the loss.
  at::Tensor head(int id, const at::Tensor& target, const Pass& pass, double factor,
                  bool output_gradient);

  /// What a backward starts from and what it computes. The outputs of a stage are
  ///   [neighbour … | bypass … | behind …]
  /// where the skip tensors in the middle go to stages that are not the neighbour. `gradients` has
  /// one tensor for each floating-point output of the two outer runs, in that order, and `bypass`
  /// one for each output of the middle run. An undefined tensor means that there is no gradient.
  struct BackwardRequest {
    bool own_loss = false;        ///< starts from this stage's loss, not from `gradients`
    Tensors gradients;            ///< of the outputs outside the `bypass` run
    Tensors bypass;               ///< of the outputs in the `bypass` run
    std::size_t behind = 0;       ///< number of outputs behind the `bypass` run
    double factor = 1;            ///< of the model's own loss, on the last stage
    bool learn = true;            ///< add the weights' gradient
    double scale = 1;             ///< factor of the weights' gradient
    bool input_gradient = false;  ///< return the inputs' gradient
    bool last = true;             ///< no further backward of `id`: free its graph
    /// Replaces `learn`: keeps what the backward_weight() of this loss needs.
    std::optional<int> half_of = {};
  };
  /// Returns, with `input_gradient`, a gradient for each input, undefined for integers and
  /// booleans; otherwise nothing.
  Tensors backward(int id, BackwardRequest request);
  /// Runs the second half of a backward() with `half_of = loss`: adds scale × the weights'
  /// gradient.
  void backward_weight(int id, int loss, double scale);

  /// Weight gradients accumulated since the last update, one per layout entry (undefined: none
  /// yet). In mixed precision, those of one backward may be in the narrow format; in float16 they
  /// are then multiplied by the loss scale.
  std::vector<at::Tensor>& gradients() { return gradients_; }
  /// Brings all of them to the wide number format and the weights' memory format, as sums over
  /// replicas need them.
  void prepare_sums();
  /// While `into` is set, the gradients that passes add are also added to it, one tensor per layout
  /// entry (undefined: none yet), in the wide format and memory of their own. Null: no longer.
  void record_gradients(std::vector<at::Tensor>* into) { recorded_ = into; }
  /// The gradients that a kept forward and the backward `request` would add if both had the weights
  /// `with`: one tensor per layout entry, undefined where there is none, in the wide format. Runs
  /// both beside the training, whose buffers, gradients and graphs stay as they are, and installs
  /// the weights `now` again. `pass` must be the forward's; `target` is needed on the last stage.
  std::vector<at::Tensor> gradients_with(const WeightKey& with, const WeightKey& now, int id,
                                         BackwardRequest request, const Pass& pass,
                                         const at::Tensor& target);
  /// A prediction from the version that an update makes; `lr` is that of the update after it.
  struct Ahead {
    WeightKey key;
    PredictionRule rule;
    double lr = 0;
  };
  /// Applies the accumulated gradients to the latest version and clears them. With `ahead` it also
  /// makes that prediction, in the same pass over memory where the rule allows, so that use() need
  /// not. In float16 it waits for the device, and if a gradient since the last update is not
  /// finite, all are discarded: the new version has the weights of the one before, and the state of
  /// the optimizer stays as it is. Throws Error{NotFinite} as LossScale::skip() does.
  void update(bool in_place, double lr, const std::optional<Ahead>& ahead = {});

 private:
  /// The weights' part of a backward that was split.
  struct Half {
    int loss = 0;
    double loss_scale = 1;  ///< of its gradients
    WeightHalf weights;
  };
  /// What a forward keeps for its backwards; a free entry has id −1.
  struct Kept {
    int id = -1;
    Keep keep = Keep::Graph;  ///< Inputs until it is recomputed
    bool input_gradient = false;
    Tensors inputs, outputs;
    at::Tensor loss;  ///< on the last stage
    at::Tensor head_gradient;
    double head_scale = 1;     ///< the loss scale of head_gradient
    std::vector<Half> halves;  ///< still to run
    bool walked = false;       ///< no further backward() follows
  };
  struct Roots {
    std::vector<at::Tensor> outputs, gradients;
  };
  struct OwnedLayer {
    LayerPtr layer;
    std::size_t first_parameter = 0, parameters = 0, first_buffer = 0, buffers = 0;
  };
  void place(const LayerPtr& layer);
  Tensors run(const OwnedLayer& placed, const Tensors& inputs, Pass pass, bool adds);
  Tensors run_layers(const Tensors& inputs, const Pass& pass, bool adds = true);
  Tensors leaving(const Tensors& values) const;
  at::Tensor arrived(const at::Tensor& value) const;
  Tensors departing(Tensors values) const;
  at::Tensor widened(const at::Tensor& value) const;
  at::Tensor unscaled(const at::Tensor& sum) const;
  void compute(Kept& slot, const Pass& pass);
  Kept& kept(int id);
  void finish_walk(Kept& slot);
  Roots roots_of(const Kept& slot, BackwardRequest& request) const;
  OnElements copying(const WeightKey& key);
  Prediction add_prediction(const Ahead& ahead);
  void make(const Ahead& ahead);
  double scale() const { return loss_scale_ ? static_cast<double>(loss_scale_->scale) : 1; }
  void apply(bool in_place, double lr, const std::optional<Ahead>& ahead);
  void skip(bool in_place, const std::optional<Ahead>& ahead);
  bool overflowed();
  void hook_leaves();
  void record(std::size_t parameter, const at::Tensor& gradient);
  at::Tensor add_gradient(std::size_t parameter, const at::Tensor& gradient);
  at::Tensor add_product(const at::Tensor& parameter, const at::Tensor& left,
                         const at::Tensor& right) override;

  StageParts parts_;
  FlatLayout layout_;
  std::vector<OwnedLayer> layers_;  ///< the head last, if there is one
  std::vector<std::string> buffer_names_;
  std::vector<at::Tensor> buffers_;
  std::optional<DeferredStatistics> deferred_;
  std::size_t main_parameters_ = 0;  ///< number of parameters without the head's
  WeightStore weights_;
  OptimizerState state_;
  std::optional<LossScale> loss_scale_;
  std::vector<at::Tensor> sent_;  ///< magnitudes() of gradients sent since the last update
  std::vector<Kept> kept_;
  std::vector<at::Tensor> gradients_;
  std::vector<int> gradient_parts_;       ///< number of terms in each gradient
  std::optional<double> gradient_scale_;  ///< factor of the running pass; none: no pass adds
  std::vector<at::Tensor>* recorded_ = nullptr;
};

using NamedShapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// Full names and shapes of the parameters of `layers` and `head`, in order.
NamedShapes parameter_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);
/// Names and shapes of what Stage::named_state() of such a stage returns, buffers included, from
/// declarations alone.
NamedShapes state_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);

}  // namespace pipewright
