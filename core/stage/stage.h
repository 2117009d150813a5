// SPDX-License-Identifier: Apache-2.0
/// Stages. A stage is a run of consecutive layers with an optional auxiliary head, its parameter
/// versions, optimizer state, buffers, and what its forwards keep for their backwards.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/deferred_statistics.h"
#include "core/nn/layer.h"
#include "core/nn/loss.h"
#include "core/optim/gradient_rules/gradient_rule.h"
#include "core/optim/optimizer.h"
#include "core/stage/disturbances.h"
#include "core/stage/gradient_sums.h"
#include "core/stage/kept_forwards.h"
#include "core/stage/weight_store.h"

namespace pipewright {

/// The parts of a stage replica. All replicas share the layers, the optimizer and the loss,
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
  int earlier = 0;                         ///< Schedule::earlier of this stage
  RunningStatistics running_statistics = RunningStatistics::PerMicrobatch;
  Perturbation perturbation = {};
  std::vector<NamedGradientRule> gradient_rules = {};
};

/// Facts of the schedule on an update.
struct UpdateFacts {
  /// The weights that the forwards have read, if a gradient rule asks for them and they are not
  /// the latest version.
  std::optional<WeightKey> read = {};
  /// The square of the norm of the model's gradient, if a gradient rule is over the model.
  std::optional<double> model_square = {};
  int staleness = 0;  ///< ActionWeights::staleness
};

/// One replica of a stage, used by one thread at a time. In mixed precision inputs, outputs and
/// their gradients are in the narrow format; losses and the last stage's outputs are in the wide
/// one. In float16 all gradients of inputs and outputs are multiplied by the stage's loss scale.
class Stage {
 public:
  using Keep = pipewright::Keep;
  using BackwardRequest = pipewright::BackwardRequest;

  /// Allocates and initialises parameters and buffers.
  Stage(StageParts parts, std::uint64_t seed);
  Stage(const Stage&) = delete;  // the hooks on its leaves hold the address of their sums
  Stage& operator=(const Stage&) = delete;

  int index() const { return parts_.index; }
  bool predicts() const { return parts_.predicts; }
  at::Device device() const { return parts_.options.device(); }
  const FlatLayout& layout() const { return layout_; }
  const Optimizer& optimizer() const { return *parts_.optimizer; }
  WeightStore& weights() { return weights_; }
  OptimizerState& optimizer_state() { return state_; }
  /// In float16 the stage's scale; otherwise none.
  std::optional<LossScale>& loss_scale() { return gradients_.loss_scale(); }
  /// Updates so far, with those that loss scaling has skipped and those whose gradients wait.
  std::int64_t updates() const {
    const std::optional<LossScale>& scale = gradients_.loss_scale();
    return state_.steps + (scale ? scale->skipped : 0) +
           (disturbances_ ? disturbances_->waiting() : 0);
  }
  /// (name, flat tensor) of what gradient rules keep, as StageGradientRules::slots() has it.
  NamedTensors rule_slots() const { return rules_.slots(); }
  /// (full name, tensor) of every buffer, in layer order.
  NamedTensors named_buffers() const;
  /// (full name, view of the latest version) of every parameter, in layer order; the head's last.
  NamedTensors named_parameters() const;
  /// Parameters and buffers, layer by layer; the head's last.
  NamedTensors named_state() const;
  /// Between schedules: ("<before>.<full name>", view) of every parameter of the versions that the
  /// next schedule may read besides the latest, `before` updates before it; none before the first
  /// schedule. restore_earlier() takes them back in a stage that has run no schedule; it throws
  /// Error{Data} if one is missing or of another shape.
  NamedTensors named_earlier() const;
  void restore_earlier(const NamedTensors& saved);
  /// The disturbances of this stage; none in most trainings.
  std::optional<Disturbances>& disturbances() { return disturbances_; }

  /// A prediction, with the learning rate `lr`, from the version that an update makes.
  struct Ahead {
    WeightKey key;
    PredictionRule rule;
    double lr = 0;
    std::vector<double> rates = {};  ///< Prediction::rates
  };
  /// The latest weights and the buffers of a moment.
  struct Aside {
    at::Tensor weights;
    std::vector<at::Tensor> buffers;
  };
  /// Copies of them, or with `copied` false the tensors themselves.
  at::Tensor weights_aside(bool copied) const;
  std::vector<at::Tensor> buffers_aside(bool copied) const;
  /// While its training is paused, evaluates with these weights and buffers instead of its own, and
  /// names them, until it is called with none. Forwards in flight stay as they are.
  void show(std::optional<Aside> aside);
  /// Installs the weights that a pass computes with; makes that prediction first, if there is one.
  void use(const WeightKey& key, const std::optional<Ahead>& ahead = {});
  /// Installs that version with the noise of `pass`, which all passes of its micro-batch have.
  /// Without `weight_noise`, and outside of a training, it installs the version itself.
  void install(const WeightKey& key, const Pass& pass);
  bool has_noise() { return disturbances_ && disturbances_->noise(); }

  /// Runs the layers. In training it keeps, under `id` and until the last backward of `id`, the
  /// graph or, with Keep::Inputs, only the inputs; recompute() must then precede the first
  /// backward. `inputs` are fresh tensors without graph; `input_gradient` says that a backward will
  /// compute their gradients. The slices of a micro-batch have consecutive numbers `id`, and each
  /// is kept until its successor's forward. Returns tensors without graph, contiguous or, if
  /// images, channels last; on the last stage none in training.
  Tensors forward(int id, Tensors inputs, const Pass& pass, bool input_gradient,
                  Keep keep = Keep::Graph);
  /// Runs forward `id`, which kept only its inputs, again to obtain its graph. The forward's
  /// weights must be installed and `pass` must be the forward's.
  void recompute(int id, const Pass& pass);
  /// Computes the loss of a kept forward on the last stage. Returns a scalar on the stage's device,
  /// without graph, as all losses here. After recompute() it must be called again, because
  /// backwards start from the loss.
  at::Tensor final_loss(int id, const PassTargets& targets);
  /// Whether its loss wants PassTargets::whole of the whole mini-batch.
  bool loss_is_over_minibatch() const {
    return parts_.loss != nullptr && parts_.loss->over_minibatch();
  }
  /// Computes the loss of outputs without recording a graph.
  at::Tensor loss_of(const Tensors& outputs, const at::Tensor& target) const;
  /// Runs forward, loss and backward of the auxiliary head on the detached output of a kept
  /// forward. Adds factor × the gradients of the head's weights. With `output_gradient` it keeps
  /// the gradient of the stage's output for the backwards of this loss. Returns the loss.
  at::Tensor head(int id, const PassTargets& targets, const Pass& pass, double factor,
                  bool output_gradient);

  /// Returns, with `input_gradient`, a gradient for each input, undefined for integers and
  /// booleans; otherwise nothing.
  Tensors backward(int id, BackwardRequest request) {
    return kept_.backward(id, std::move(request));
  }
  /// Gives all kept forwards the numbers `id` that many later.
  void move_on(int numbers) { kept_.move_on(numbers); }
  /// A copy of a parameter that the stage lends to others, of the installed version.
  at::Tensor lent(int parameter) const;
  /// A copy of a parameter's gradient since the last update, to be sent.
  at::Tensor lent_gradient(int parameter) { return gradients_.sent(as_size(parameter)); }
  /// Adds `scale` times a parameter's gradient that another stage has computed.
  void add_lent(int parameter, const at::Tensor& gradient, double scale);
  /// Runs the second half of a backward() with `half_of = loss`: adds scale × the weights'
  /// gradient.
  void backward_weight(int id, int loss, double scale) { kept_.backward_weight(id, loss, scale); }

  /// Weight gradients accumulated since the last update, one per layout entry (undefined: none
  /// yet). In mixed precision, those of one backward may be in the narrow format; in float16 they
  /// are then multiplied by the loss scale.
  std::vector<at::Tensor>& gradients() { return gradients_.sums(); }
  WeightGradients& gradient_sums() { return gradients_; }
  /// Brings all of them to the wide number format and the weights' memory format, as sums over
  /// replicas need them.
  void prepare_sums() { gradients_.prepare(); }
  /// With `gradient_delay`, exchanges the accumulated gradients for those that the next update()
  /// applies, and must be called before it.
  void delay_gradients() {
    if (disturbances_) disturbances_->delay(gradients_, parts_.index);
  }
  /// Applies the accumulated gradients to the latest version and clears them. With `ahead` it also
  /// makes that prediction, in the same pass over memory where the rule allows, so that use() need
  /// not. In float16 it waits for the device, and if a gradient since the last update is not
  /// finite, all are discarded: the new version has the weights of the one before, and the state of
  /// the optimizer stays as it is. Throws Error{NotFinite} as LossScale::skip() does.
  /// Gradient rules are applied to the gradients before.
  void update(bool in_place, double lr, const std::optional<Ahead>& ahead = {},
              const UpdateFacts& facts = {});
  /// Whether a gradient rule is over the whole model. Then this function is called before update(),
  /// which is given what all stages' add up to: it applies the rules that stand before that one,
  /// and returns the square of the norm of the gradients. Waits for the device.
  bool ruled_over_model() const { return rules_.over_model(); }
  double square_of_gradients(const std::optional<WeightKey>& read);

 private:
  friend class StageProbeAccess;

  struct OwnedLayer {
    LayerPtr layer;
    std::size_t first_parameter = 0, parameters = 0, first_buffer = 0, buffers = 0;
  };
  void add_layer(const LayerPtr& layer);
  Tensors run(const OwnedLayer& placed, const Tensors& inputs, Pass pass, bool adds);
  Tensors run_layers(const Tensors& inputs, const Pass& pass, bool adds = true);
  Tensors leaving(const Tensors& values) const;
  Tensors departing(Tensors values) const;
  void compute(KeptForward& slot, const Pass& pass);
  OnElements copying(const WeightKey& key);
  Prediction add_prediction(const Ahead& ahead);
  void make(const Ahead& ahead);
  void apply(bool in_place, double lr, const std::optional<Ahead>& ahead, const UpdateFacts& facts);
  void apply_rules(StageGradientRules::Part part, const std::optional<WeightKey>& read,
                   double model_square = 0);
  void stay(bool in_place, const std::optional<Ahead>& ahead);

  StageParts parts_;
  FlatLayout layout_;
  std::vector<OwnedLayer> layers_;  ///< the head last, if there is one
  std::vector<std::string> buffer_names_;
  std::vector<at::Tensor> buffers_;
  std::optional<DeferredStatistics> deferred_;
  std::size_t main_parameters_ = 0;  ///< number of parameters without the head's
  WeightStore weights_;
  WeightGradients gradients_;
  KeptForwards kept_;
  OptimizerState state_;
  StageGradientRules rules_;
  std::optional<Disturbances> disturbances_;
  std::optional<Aside> aside_;
};

/// Full names and shapes of the parameters of `layers` and `head`, in order.
NamedShapes parameter_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);
/// The elements of all of them; of parameters too many for 64 bits, too.
double elements_of(const NamedShapes& shapes);
/// Names and shapes of what Stage::named_state() of such a stage returns, buffers included, from
/// declarations alone.
NamedShapes state_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head = nullptr);

}  // namespace pipewright
