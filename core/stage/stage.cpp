// SPDX-License-Identifier: Apache-2.0
#include "core/stage/stage.h"

#include <utility>

#include "core/nn/initialize.h"
#include "core/nn/layers/earlier_slices.h"
#include "core/nn/memory_format.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// The places of all parameters in a flat tensor.
FlatLayout layout_of(const StageParts& parts) {
  FlatLayout layout = flat_layout(parameter_shapes(parts.layers, parts.head),
                                  static_cast<std::int64_t>(parts.options.dtype().itemsize()));
  auto entry = layout.entries.begin();
  const auto mark = [&](const Layer& layer) {
    for (const ParameterSpec& spec : layer.parameters()) {
      entry->exact = spec.exact;
      entry->channels_last = parts.channels_last;
      ++entry;
    }
  };
  for (const LayerPtr& layer : parts.layers) mark(*layer);
  if (parts.head) mark(*parts.head);
  return layout;
}

std::size_t parameter_count(const std::vector<LayerPtr>& layers) {
  std::size_t count = 0;
  for (const LayerPtr& layer : layers) count += layer->parameters().size();
  return count;
}

}  // namespace

Stage::Stage(StageParts parts, std::uint64_t seed)
    : parts_(std::move(parts)),
      layout_(layout_of(parts_)),
      main_parameters_(parameter_count(parts_.layers)),
      weights_(layout_, parts_.options, parts_.narrow, parts_.earlier),
      gradients_(weights_.leaves(), parts_.options, parts_.narrow, parts_.channels_last),
      kept_(parts_.index, parts_.last, parts_.channels_last,
            weights_.leaves().first(main_parameters_), gradients_),
      state_(fresh_state(*parts_.optimizer, layout_, parts_.options, parts_.predicts,
                         parts_.keep_gradient)),
      rules_(parts_.gradient_rules, layout_.size, parts_.options) {
  if (parts_.drift_decay) state_.drift = at::zeros({layout_.size}, parts_.options);
  for (const LayerPtr& layer : parts_.layers) add_layer(layer);
  if (parts_.head) add_layer(parts_.head);
  auto parameters = named_parameters();
  std::size_t next = 0;
  for (const OwnedLayer& placed : layers_)
    for (const ParameterSpec& spec : placed.layer->parameters()) {
      initialize(parameters[next].second, spec.init, seed,
                 spec.drawn_as.empty() ? parameters[next].first : spec.drawn_as);
      ++next;
    }
  if (weights_.has_copies()) weights_.copy({0, 0, 0});
  if (parts_.perturbation.any()) {
    std::vector<TensorQueue::Item> buffers;
    for (const auto& [name, buffer] : named_buffers())
      buffers.push_back({name, buffer.sizes().vec()});
    disturbances_.emplace(parts_.perturbation, layout_, std::move(buffers), parts_.options);
  }
  if (parts_.running_statistics == RunningStatistics::Deferred ||
      parts_.running_statistics == RunningStatistics::DeferredBiased)
    deferred_.emplace(parts_.running_statistics == RunningStatistics::DeferredBiased);
}

void Stage::add_layer(const LayerPtr& layer) {
  OwnedLayer placed{.layer = layer, .parameters = layer->parameters().size()};
  if (!layers_.empty()) {
    placed.first_parameter = layers_.back().first_parameter + layers_.back().parameters;
    placed.first_buffer = layers_.back().first_buffer + layers_.back().buffers;
  }
  for (const BufferSpec& spec : layer->buffers()) {
    buffer_names_.push_back(parameter_name(*layer, spec.name));
    buffers_.push_back(at::full(spec.shape, spec.fill, parts_.options));
    ++placed.buffers;
  }
  layers_.push_back(placed);
}

at::Tensor Stage::lent(int parameter) const {
  return weights_.leaves()[as_size(parameter)].detach().clone();
}

void Stage::add_lent(int parameter, const at::Tensor& gradient, double scale) {
  const WeightGradients::Adding adding(gradients_, scale / gradients_.scale());
  gradients_.add(as_size(parameter), gradient);
}

at::Tensor Stage::weights_aside(bool copied) const {
  return copied ? weights_.latest().clone() : weights_.latest();
}

std::vector<at::Tensor> Stage::buffers_aside(bool copied) const {
  std::vector<at::Tensor> buffers = buffers_;
  if (copied)
    for (at::Tensor& buffer : buffers) buffer = buffer.clone();
  return buffers;
}

void Stage::show(std::optional<Aside> aside) {
  aside_ = std::move(aside);
  if (aside_) weights_.install_other(aside_->weights);
}

void Stage::use(const WeightKey& key, const std::optional<Ahead>& ahead) {
  if (aside_) return;  // its weights are installed
  if (ahead) make(*ahead);
  weights_.install(key);
}

void Stage::install(const WeightKey& key, const Pass& pass) {
  if (!has_noise() || !pass.training) return use(key);
  const at::NoGradGuard no_grad;
  at::mul_out(weights_.scratch(), weights_.version(key), disturbances_->noise()->factors(pass));
  weights_.install_scratch();
}

void Stage::make(const Ahead& ahead) {
  const at::NoGradGuard no_grad;
  const Prediction prediction = add_prediction(ahead);
  const bool by_drift = ahead.rule.kind == PredictionRule::Kind::Drift;
  if (by_drift)
    at::add_out(prediction.ahead, prediction.weights, state_.drift, prediction.steps);
  else
    predict(*parts_.optimizer, prediction);
  if (weights_.has_copies() && (by_drift || !prediction.made)) weights_.copy(ahead.key);
}

/// Makes the copy of a version block by block while it is made, where the optimizer calls for it
/// (on the CPU, for copies in bfloat16); without copies nothing.
OnElements Stage::copying(const WeightKey& key) {
  if (parts_.narrow != at::kBFloat16 || !device().is_cpu()) return nullptr;
  return [this, key](std::int64_t begin, std::int64_t end) { weights_.copy(key, begin, end); };
}

Prediction Stage::add_prediction(const Ahead& ahead) {
  at::Tensor& memory = weights_.add_prediction(ahead.key);
  return {.weights = weights_.version({ahead.key.version, 0, 0}),
          .ahead = memory,
          .state = state_,
          .rule = ahead.rule,
          .steps = ahead.key.ahead,
          .lr = ahead.lr,
          .made = copying(ahead.key),
          .rates = ahead.rates};
}

Tensors Stage::run(const OwnedLayer& placed, const Tensors& inputs, Pass pass, bool adds) {
  pass.format = parts_.narrow.value_or(parts_.options.dtype().toScalarType());
  if (deferred_) pass.deferred = &*deferred_;
  if (pass.training && adds) pass.sums = &gradients_;
  const std::span<at::Tensor> own(aside_ ? aside_->buffers : buffers_);
  const bool lags = disturbances_ && !pass.training;
  const std::span<at::Tensor> buffers = lags ? disturbances_->evaluated(own) : own;
  return placed.layer->forward_all(
      inputs, weights_.leaves().subspan(placed.first_parameter, placed.parameters),
      buffers.subspan(placed.first_buffer, placed.buffers), pass);
}

Tensors Stage::run_layers(const Tensors& inputs, const Pass& pass, bool adds) {
  Tensors values = inputs;
  const std::size_t layers = layers_.size() - (parts_.head ? 1 : 0);
  for (std::size_t i = 0; i < layers; ++i) values = run(layers_[i], values, pass, adds);
  if (parts_.last) values[0] = gradients_.widened(values[0]);
  return parts_.copies.empty() ? values : leaving(values);
}

Tensors Stage::departing(Tensors values) const {
  for (at::Tensor& value : values) value = laid_out(value.detach(), parts_.channels_last);
  return values;
}

Tensors Stage::leaving(const Tensors& values) const {
  const auto aside = values.end() - std::ssize(parts_.copies);
  Tensors all(values.begin(), aside);
  for (std::size_t i = 0; i < parts_.copies.size(); ++i)
    all.append(static_cast<std::size_t>(parts_.copies[i]), aside[static_cast<std::ptrdiff_t>(i)]);
  return all;
}

/// Computes the outputs of a kept forward, with a graph if slot.keep is Keep::Graph.
void Stage::compute(KeptForward& slot, const Pass& pass) {
  const bool graph = slot.keep == Keep::Graph;
  const at::AutoGradMode record(graph);
  if (graph && slot.input_gradient)
    for (at::Tensor& input : slot.inputs)
      if (input.is_floating_point()) input.set_requires_grad(true);
  Pass with = pass;
  with.earlier = slot.earlier.get();
  slot.outputs = run_layers(slot.inputs, with);
}

Tensors Stage::forward(int id, Tensors inputs, const Pass& pass, bool input_gradient, Keep keep) {
  for (at::Tensor& input : inputs) input = kept_.arrived(input);
  if (!pass.training) {
    const at::NoGradGuard no_grad;
    const Tensors values = run_layers(inputs, pass);
    return parts_.last ? values : departing(values);
  }
  if (disturbances_) disturbances_->begin_forward(pass, buffers_);
  std::shared_ptr<EarlierSlices> earlier;
  if (pass.slices > 1)
    earlier = pass.slice == 0 ? std::make_shared<EarlierSlices>() : kept_.forward(id - 1).earlier;
  KeptForward& slot = kept_.add({.id = id,
                                 .keep = keep,
                                 .input_gradient = input_gradient,
                                 .inputs = std::move(inputs),
                                 .earlier = std::move(earlier)});
  compute(slot, pass);
  if (parts_.last) return {};
  Tensors values = slot.outputs;
  if (keep == Keep::Inputs && !parts_.head) slot.outputs.clear();
  return departing(std::move(values));
}

void Stage::recompute(int id, const Pass& pass) {
  KeptForward& slot = kept_.forward(id);
  slot.keep = Keep::Graph;
  Pass again = pass;
  again.recomputing = parts_.running_statistics != RunningStatistics::PerPass;
  compute(slot, again);
}

at::Tensor Stage::final_loss(int id, const PassTargets& targets) {
  KeptForward& slot = kept_.forward(id);
  const at::AutoGradMode record(slot.keep == Keep::Graph);
  const at::Tensor loss = parts_.loss->of_pass(slot.outputs[0], targets);
  if (slot.keep == Keep::Graph)
    slot.loss = loss;
  else
    slot.outputs.clear();
  return loss.detach();
}

at::Tensor Stage::loss_of(const Tensors& outputs, const at::Tensor& target) const {
  const at::AutoGradMode record(false);
  return (*parts_.loss)(outputs[0], target);
}

at::Tensor Stage::head(int id, const PassTargets& targets, const Pass& pass, double factor,
                       bool output_gradient) {
  const at::AutoGradMode record(true);
  KeptForward& slot = kept_.forward(id);
  const at::Tensor output = slot.outputs[0].detach().set_requires_grad(output_gradient);
  const at::Tensor loss = parts_.loss->of_pass(
      gradients_.widened(run(layers_.back(), {output}, pass, true)[0]), targets);
  const auto leaves = weights_.leaves().subspan(main_parameters_);
  std::vector<at::Tensor> wanted(leaves.begin(), leaves.end());
  if (output_gradient) wanted.push_back(output);
  const double scale = gradients_.scale();
  const WeightGradients::Adding adding(gradients_, 1 / scale);
  const auto gradients = torch::autograd::grad(
      {loss}, wanted, {at::full_like(loss, factor * scale)}, false, false, true);
  if (output_gradient) slot.head_gradient = gradients.back();
  slot.head_scale = scale;
  if (slot.keep == Keep::Inputs) slot.outputs.clear();
  return loss.detach();
}

void Stage::apply_rules(StageGradientRules::Part part, const std::optional<WeightKey>& read,
                        double model_square) {
  const at::Tensor& latest = weights_.latest();
  if (part == StageGradientRules::Part::BeforeModel) gradients_.prepare();
  rules_.apply(part, {.layout = layout_,
                      .gradients = gradients_.sums(),
                      .weights = latest,
                      .read = read ? weights_.version(*read) : latest,
                      .updates = state_.steps,
                      .model_square = model_square,
                      .peak_lr = parts_.optimizer->lr()});
}

double Stage::square_of_gradients(const std::optional<WeightKey>& read) {
  const at::NoGradGuard no_grad;
  if (disturbances_ && disturbances_->is_idle()) return 0;
  apply_rules(StageGradientRules::Part::BeforeModel, read);
  std::vector<at::Tensor> norms;
  for (const at::Tensor& gradient : gradients_.sums())
    if (gradient.defined())
      norms.push_back(at::linalg_vector_norm(gradient, 2, {}, false, at::kDouble));
  return norms.empty() ? 0 : at::stack(norms).square_().sum().item<double>();
}

void Stage::update(bool in_place, double lr, const std::optional<Ahead>& ahead,
                   const UpdateFacts& facts) {
  const at::NoGradGuard no_grad;
  if (disturbances_ && disturbances_->delays()) {
    disturbances_->is_idle() ? stay(in_place, ahead) : apply(in_place, lr, ahead, facts);
  } else if (gradients_.discarded(parts_.index)) {
    stay(in_place, ahead);
  } else {
    apply(in_place, lr, ahead, facts);
    if (loss_scale()) loss_scale()->updated();
  }
  gradients_.clear();
}

/// Makes a version with the weights of the one before.
void Stage::stay(bool in_place, const std::optional<Ahead>& ahead) {
  const auto [from, to] = weights_.advance(in_place);
  if (!in_place) {
    to.copy_(from);
    if (weights_.has_copies()) weights_.copy({weights_.latest_number(), 0, 0});
  }
  if (ahead) make(*ahead);
}

void Stage::apply(bool in_place, double lr, const std::optional<Ahead>& ahead,
                  const UpdateFacts& facts) {
  if (facts.model_square)
    apply_rules(StageGradientRules::Part::FromModel, facts.read, *facts.model_square);
  else if (!rules_.empty())
    apply_rules(StageGradientRules::Part::BeforeModel, facts.read);
  auto [from, to] = weights_.advance(in_place);
  const bool corrects = rules_.correct_steps();
  const std::int64_t updates = state_.steps;
  const OptimizerStep step{.layout = layout_,
                           .gradients = gradients_.sums(),
                           .weights = from,
                           .next = to,
                           .state = state_,
                           .lr = lr,
                           .made = corrects ? nullptr : copying({weights_.latest_number(), 0, 0}),
                           .loss_scale = gradients_.scale(),
                           .staleness = facts.staleness};
  const bool compares = parts_.drift_decay || rules_.follow_steps();
  const at::Tensor before = compares && in_place ? from.clone() : from;
  const bool by_drift = ahead && ahead->rule.kind == PredictionRule::Kind::Drift;
  const bool predicts_after = by_drift || (ahead && corrects);
  if (ahead && !predicts_after)
    step_and_predict(*parts_.optimizer, step, add_prediction(*ahead));
  else
    parts_.optimizer->step(step);
  rules_.stepped({.before = before, .after = to, .updates = updates, .lr = lr});
  if (weights_.has_copies() && !step.made) weights_.copy({weights_.latest_number(), 0, 0});
  if (parts_.drift_decay)
    state_.drift.mul_(*parts_.drift_decay).add_(to - before, 1 - *parts_.drift_decay);
  if (predicts_after)
    make(*ahead);
  else if (ahead && weights_.has_copies() && !step.made)
    weights_.copy(ahead->key);
}

}  // namespace pipewright
