// SPDX-License-Identifier: Apache-2.0
#include "core/stage/stage.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/stage/initialize.h"
#include "core/stage/memory_format.h"
#include "core/stage/torch.h"

namespace pipewright {

namespace {

NamedShapes shapes_of(const std::vector<LayerPtr>& layers, const LayerPtr& head, bool buffers) {
  NamedShapes shapes;
  auto append = [&](const Layer& layer) {
    for (const ParameterSpec& spec : layer.parameters())
      shapes.emplace_back(parameter_name(layer, spec.name), spec.shape);
    if (!buffers) return;
    for (const BufferSpec& spec : layer.buffers())
      shapes.emplace_back(parameter_name(layer, spec.name), spec.shape);
  };
  for (const LayerPtr& layer : layers) append(*layer);
  if (head) append(*head);
  return shapes;
}

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

/// While it lives, gradients of the leaves are accumulated, multiplied by `scale`.
class Adding {
 public:
  Adding(std::optional<double>& place, double scale) : place_(place) { place_ = scale; }
  ~Adding() { place_.reset(); }
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;

 private:
  std::optional<double>& place_;
};

}  // namespace

NamedShapes parameter_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head) {
  return shapes_of(layers, head, false);
}

NamedShapes state_shapes(const std::vector<LayerPtr>& layers, const LayerPtr& head) {
  return shapes_of(layers, head, true);
}

Stage::Stage(StageParts parts, std::uint64_t seed)
    : parts_(std::move(parts)),
      layout_(layout_of(parts_)),
      weights_(layout_, parts_.options, parts_.narrow),
      state_(fresh_state(*parts_.optimizer, layout_, parts_.options, parts_.predicts,
                         parts_.keep_gradient)),
      gradients_(layout_.entries.size()),
      gradient_parts_(layout_.entries.size(), 0) {
  if (parts_.narrow == at::kHalf) loss_scale_.emplace();
  if (parts_.drift_decay) state_.drift = at::zeros({layout_.size}, parts_.options);
  for (const LayerPtr& layer : parts_.layers) place(layer);
  main_parameters_ =
      layers_.empty() ? 0 : layers_.back().first_parameter + layers_.back().parameters;
  if (parts_.head) place(parts_.head);
  auto parameters = named_parameters();
  std::size_t next = 0;
  for (const OwnedLayer& placed : layers_)
    for (const ParameterSpec& spec : placed.layer->parameters()) {
      initialize(parameters[next].second, spec.init, seed, parameters[next].first);
      ++next;
    }
  if (weights_.has_copies()) weights_.copy({0, 0, 0});
  hook_leaves();
  if (parts_.running_statistics != RunningStatistics::PerMicrobatch)
    deferred_.emplace(parts_.running_statistics == RunningStatistics::DeferredBiased);
}

/// Accumulates each gradient as soon as it has been computed: it is still in the cache then, and
/// its memory becomes free for the next layer's gradient.
void Stage::hook_leaves() {
  const auto leaves = weights_.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    leaves[i].register_hook(
        [this, i](const at::Tensor& gradient) { return add_gradient(i, gradient); });
}

void Stage::place(const LayerPtr& layer) {
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

std::vector<std::pair<std::string, at::Tensor>> Stage::named_buffers() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) all.emplace_back(buffer_names_[i], buffers_[i]);
  return all;
}

std::vector<std::pair<std::string, at::Tensor>> Stage::named_parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  const at::Tensor& latest = weights_.latest();
  for (const FlatLayout::Entry& entry : layout_.entries)
    all.emplace_back(entry.name, entry.of(latest));
  return all;
}

std::vector<std::pair<std::string, at::Tensor>> Stage::named_state() const {
  const auto parameters = named_parameters(), buffers = named_buffers();
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const OwnedLayer& placed : layers_) {
    for (std::size_t i = 0; i < placed.parameters; ++i)
      all.push_back(parameters[placed.first_parameter + i]);
    for (std::size_t i = 0; i < placed.buffers; ++i)
      all.push_back(buffers[placed.first_buffer + i]);
  }
  return all;
}

void Stage::use(const ActionWeights& weights, const std::vector<PredictionRule>& rules, double lr) {
  if (weights.makes) {
    const PredictionRule& rule = rules[static_cast<std::size_t>(weights.key.rule)];
    make({weights.key, rule, lr});
  }
  weights_.install(weights.key);
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
          .made = copying(ahead.key)};
}

Tensors Stage::run(const OwnedLayer& placed, const Tensors& inputs, Pass pass, bool adds) {
  if (deferred_) pass.deferred = &*deferred_;
  if (pass.training && adds) pass.sums = this;
  return placed.layer->forward_all(
      inputs, weights_.leaves().subspan(placed.first_parameter, placed.parameters),
      std::span(buffers_).subspan(placed.first_buffer, placed.buffers), pass);
}

Tensors Stage::run_layers(const Tensors& inputs, const Pass& pass, bool adds) {
  Tensors values = inputs;
  const std::size_t layers = layers_.size() - (parts_.head ? 1 : 0);
  for (std::size_t i = 0; i < layers; ++i) values = run(layers_[i], values, pass, adds);
  if (parts_.last) values[0] = widened(values[0]);
  return parts_.copies.empty() ? values : leaving(values);
}

/// Codecs decode to contiguous tensors.
at::Tensor Stage::arrived(const at::Tensor& value) const {
  return parts_.channels_last ? laid_out(value, true) : value;
}

Tensors Stage::departing(Tensors values) const {
  for (at::Tensor& value : values) value = laid_out(value.detach(), parts_.channels_last);
  return values;
}

at::Tensor Stage::widened(const at::Tensor& value) const {
  return parts_.narrow ? value.to(parts_.options.dtype().toScalarType()) : value;
}

/// The sum of gradients in the wide format.
at::Tensor Stage::unscaled(const at::Tensor& sum) const {
  return sum.scalar_type() == at::kHalf ? widened(sum).div_(scale()) : widened(sum);
}

Tensors Stage::leaving(const Tensors& values) const {
  const auto aside = values.end() - std::ssize(parts_.copies);
  Tensors all(values.begin(), aside);
  for (std::size_t i = 0; i < parts_.copies.size(); ++i)
    all.append(static_cast<std::size_t>(parts_.copies[i]), aside[static_cast<std::ptrdiff_t>(i)]);
  return all;
}

/// Computes the outputs of a kept forward, with a graph if slot.keep is Keep::Graph.
void Stage::compute(Kept& slot, const Pass& pass) {
  const bool graph = slot.keep == Keep::Graph;
  const at::AutoGradMode record(graph);
  if (graph && slot.input_gradient)
    for (at::Tensor& input : slot.inputs)
      if (input.is_floating_point()) input.set_requires_grad(true);
  slot.outputs = run_layers(slot.inputs, pass);
}

Tensors Stage::forward(int id, Tensors inputs, const Pass& pass, bool input_gradient, Keep keep) {
  for (at::Tensor& input : inputs) input = arrived(input);
  if (!pass.training) {
    const at::NoGradGuard no_grad;
    const Tensors values = run_layers(inputs, pass);
    return parts_.last ? values : departing(values);
  }
  Kept& slot = kept(-1);
  slot = {.id = id, .keep = keep, .input_gradient = input_gradient, .inputs = std::move(inputs)};
  compute(slot, pass);
  if (parts_.last) return {};
  Tensors values = slot.outputs;
  if (keep == Keep::Inputs && !parts_.head) slot.outputs.clear();
  return departing(std::move(values));
}

void Stage::recompute(int id, const Pass& pass) {
  Kept& slot = kept(id);
  slot.keep = Keep::Graph;
  Pass again = pass;
  again.recomputing = true;
  compute(slot, again);
}

Stage::Kept& Stage::kept(int id) {
  for (Kept& slot : kept_)
    if (slot.id == id) return slot;
  PIPEWRIGHT_CHECK(id == -1, "stage ", parts_.index, " keeps no forward ", id);
  return kept_.emplace_back();
}

at::Tensor Stage::final_loss(int id, const at::Tensor& target) {
  Kept& slot = kept(id);
  const at::AutoGradMode record(slot.keep == Keep::Graph);
  const at::Tensor loss = (*parts_.loss)(slot.outputs[0], target);
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

at::Tensor Stage::head(int id, const at::Tensor& target, const Pass& pass, double factor,
                       bool output_gradient) {
  const at::AutoGradMode record(true);
  Kept& slot = kept(id);
  const at::Tensor output = slot.outputs[0].detach().set_requires_grad(output_gradient);
  const at::Tensor loss =
      (*parts_.loss)(widened(run(layers_.back(), {output}, pass, true)[0]), target);
  const auto leaves = weights_.leaves().subspan(main_parameters_);
  std::vector<at::Tensor> of(leaves.begin(), leaves.end());
  if (output_gradient) of.push_back(output);
  const Adding adding(gradient_scale_, 1 / scale());
  const auto gradients = torch::autograd::grad({loss}, of, {at::full_like(loss, factor * scale())},
                                               false, false, true);
  if (output_gradient) slot.head_gradient = gradients.back();
  slot.head_scale = scale();
  if (slot.keep == Keep::Inputs) slot.outputs.clear();
  return loss.detach();
}

/// The roots of a backward: the loss, or the outputs that have a gradient.
Stage::Roots Stage::roots_of(const Kept& slot, BackwardRequest& request) const {
  if (request.own_loss && parts_.last) {
    const double factor = request.factor * scale();
    return {{slot.loss},
            {factor == 1 && !request.half_of ? at::Tensor() : at::full_like(slot.loss, factor)}};
  }
  if (request.own_loss) {  // the head reads the first output only
    request.gradients.assign(slot.outputs.size(), at::Tensor());
    request.gradients[0] = slot.head_scale == scale()
                               ? slot.head_gradient
                               : slot.head_gradient.mul(scale() / slot.head_scale);
    request.bypass.clear();
  }
  Roots roots;
  const std::size_t first = slot.outputs.size() - request.behind - request.bypass.size();
  std::size_t next = 0;
  for (std::size_t i = 0; i < slot.outputs.size(); ++i) {
    const at::Tensor& output = slot.outputs[i];
    if (!output.is_floating_point()) continue;
    const bool bypass = i - first < request.bypass.size();
    const at::Tensor& gradient = bypass ? request.bypass[i - first] : request.gradients[next++];
    if (!output.requires_grad() || !gradient.defined()) continue;
    roots.outputs.push_back(output);
    roots.gradients.push_back(arrived(gradient));
  }
  return roots;
}

Tensors Stage::backward(int id, BackwardRequest request) {
  Kept& slot = kept(id);
  PIPEWRIGHT_CHECK(slot.keep == Keep::Graph, "forward ", id, " has not been recomputed");
  const Roots roots = roots_of(slot, request);
  const auto leaves = weights_.leaves().first(main_parameters_);
  std::vector<at::Tensor> inputs, results;
  if (request.input_gradient)
    for (const at::Tensor& input : slot.inputs)
      if (input.requires_grad()) inputs.push_back(input);
  std::vector<at::Tensor> of(leaves.begin(), request.learn ? leaves.end() : leaves.begin());
  const auto learned = static_cast<std::ptrdiff_t>(of.size());
  of.insert(of.end(), inputs.begin(), inputs.end());
  if (request.half_of) {
    InputHalf half = backward_of_inputs(roots.outputs, roots.gradients, inputs, leaves);
    slot.halves.push_back({*request.half_of, scale(), std::move(half.weights)});
    results = std::move(half.of_inputs);
  } else if (!roots.outputs.empty() && !of.empty()) {
    const Adding adding(gradient_scale_, request.scale / scale());
    const bool keep_graph = !request.last || !slot.halves.empty();
    results = torch::autograd::grad(roots.outputs, of, roots.gradients, keep_graph, false, true);
    results.erase(results.begin(), results.begin() + learned);
  }
  Tensors of_inputs;
  if (request.input_gradient) {
    auto result = results.begin();
    for (const at::Tensor& input : slot.inputs) {
      of_inputs.emplace_back();
      if (!input.requires_grad()) continue;
      const at::Tensor gradient = result == results.end() ? at::Tensor() : *result++;
      of_inputs.back() =
          gradient.defined() ? laid_out(gradient, parts_.channels_last) : at::zeros_like(input);
    }
  }
  if (loss_scale_)
    for (at::Tensor& magnitude : magnitudes(of_inputs)) sent_.push_back(std::move(magnitude));
  if (request.last) finish_walk(slot);
  return of_inputs;
}

/// Called after the last backward(): keeps only what the outstanding weight halves need.
void Stage::finish_walk(Kept& slot) {
  if (slot.halves.empty()) {
    slot = Kept{};
    return;
  }
  for (Half& half : slot.halves)
    half.weights.release_inputs(weights_.leaves().first(main_parameters_));
  Kept rest{.id = slot.id, .halves = std::move(slot.halves), .walked = true};
  slot = std::move(rest);
}

void Stage::backward_weight(int id, int loss, double scale) {
  Kept& slot = kept(id);
  const auto half = std::ranges::find(slot.halves, loss, &Half::loss);
  PIPEWRIGHT_CHECK(half != slot.halves.end(), "stage ", parts_.index, " has no half of loss ",
                   loss);
  {
    const Adding adding(gradient_scale_, scale / half->loss_scale);
    half->weights.run(weights_.leaves().first(main_parameters_), !slot.walked);
  }
  slot.halves.erase(half);
  if (slot.walked && slot.halves.empty()) slot = Kept{};
}

std::vector<at::Tensor> Stage::gradients_with(const WeightKey& with, const WeightKey& now, int id,
                                              BackwardRequest request, const Pass& pass,
                                              const at::Tensor& target) {
  const Kept& slot = kept(id);
  Kept beside{
      .keep = Keep::Graph, .head_gradient = slot.head_gradient, .head_scale = slot.head_scale};
  for (const at::Tensor& input : slot.inputs) beside.inputs.push_back(input.detach());
  Pass again = pass;
  again.recomputing = true;
  weights_.install(with);
  const auto leaves = weights_.leaves().first(main_parameters_);
  std::vector<at::Tensor> gradients(layout_.entries.size());
  {
    const at::AutoGradMode record(true);
    beside.outputs = run_layers(beside.inputs, again, /*adds=*/false);
    if (request.own_loss && parts_.last) beside.loss = (*parts_.loss)(beside.outputs[0], target);
    const Roots roots = roots_of(beside, request);
    std::vector<at::Tensor> of(leaves.begin(), leaves.end());
    if (!roots.outputs.empty())
      of = torch::autograd::grad(roots.outputs, of, roots.gradients, false, false, true);
    for (std::size_t i = 0; i < of.size(); ++i)
      if (!roots.outputs.empty() && of[i].defined())
        gradients[i] = widened(of[i].detach()).mul(request.scale / scale());
  }
  weights_.install(now);
  return gradients;
}

void Stage::record(std::size_t parameter, const at::Tensor& gradient) {
  at::Tensor& sum = (*recorded_)[parameter];
  const at::Tensor own = widened(gradient).mul(*gradient_scale_);
  sum = sum.defined() ? sum.add_(own) : own;
}

/// Accumulates a gradient and returns the sum so far, or zeros, so that autograd does not hold the
/// gradient itself. Gradients that a layer computes within its own forward are returned unchanged.
/// A sum is in the wide format, and so is a gradient with a factor. In float16 a first gradient
/// keeps the loss scale until it is added to another or used.
at::Tensor Stage::add_gradient(std::size_t parameter, const at::Tensor& gradient) {
  if (!gradient_scale_ || !gradient.defined()) return gradient;
  const at::NoGradGuard no_grad;
  if (recorded_ != nullptr) record(parameter, gradient);
  const double scale = *gradient_scale_, unit = 1 / this->scale();
  at::Tensor& sum = gradients_[parameter];
  int& parts = gradient_parts_[parameter];
  // The first term may share memory with autograd, a message or another parameter, so the second
  // term allocates a new sum; only that sum is updated in place.
  const bool narrow = parts_.narrow && gradient.scalar_type() == *parts_.narrow;
  if (parts == 0 && scale == unit && (narrow || unit == 1))
    sum = gradient;
  else if (parts == 0)
    sum = narrow ? widened(gradient).mul_(scale) : gradient.mul(scale);
  else if (parts == 1 && !narrow)
    sum = at::add(sum, gradient, scale);
  else
    sum = unscaled(sum).add_(gradient, scale);
  ++parts;
  // Autograd wants the gradient's format and shape back; of zeros it then holds a single number.
  return sum.scalar_type() == gradient.scalar_type()
             ? sum
             : at::zeros({}, gradient.options()).expand_as(gradient);
}

/// Adds inside the product once there is a sum in memory of its own, as a first product is.
at::Tensor Stage::add_product(const at::Tensor& parameter, const at::Tensor& left,
                              const at::Tensor& right) {
  const auto leaves = weights_.leaves();
  const auto leaf =
      std::ranges::find_if(leaves, [&](const auto& l) { return l.is_same(parameter); });
  const auto at = static_cast<std::size_t>(leaf - leaves.begin());
  PIPEWRIGHT_CHECK(at < leaves.size(), "a product for no parameter of stage ", parts_.index);
  const at::NoGradGuard no_grad;
  at::Tensor& sum = gradients_[at];
  if (!gradient_scale_ || !sum.defined() || sum.storage().use_count() > 1) return left.mm(right);
  if (recorded_ != nullptr) record(at, left.mm(right));
  sum.addmm_(left, right, 1, *gradient_scale_);
  ++gradient_parts_[at];
  return {};
}

void Stage::prepare_sums() {
  const at::NoGradGuard no_grad;
  for (at::Tensor& gradient : gradients_)
    if (gradient.defined()) gradient = laid_out(unscaled(gradient), parts_.channels_last);
}

void Stage::update(bool in_place, double lr, const std::optional<Ahead>& ahead) {
  const at::NoGradGuard no_grad;
  if (loss_scale_ && overflowed()) {
    skip(in_place, ahead);
  } else {
    apply(in_place, lr, ahead);
    if (loss_scale_) loss_scale_->updated();
  }
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    gradients_[i].reset();
    gradient_parts_[i] = 0;
  }
}

/// The gradients of the inputs count as well: the stage before this one cannot help it if they
/// arrive infinite.
bool Stage::overflowed() {
  std::vector<at::Tensor> all = std::exchange(sent_, {});
  for (at::Tensor& own : magnitudes(gradients_)) all.push_back(std::move(own));
  return !all.empty() && !at::stack(all).isfinite().all().item<bool>();
}

void Stage::skip(bool in_place, const std::optional<Ahead>& ahead) {
  loss_scale_->skip(parts_.index);
  const auto [from, to] = weights_.advance(in_place);
  if (!in_place) {
    to.copy_(from);
    weights_.copy({weights_.latest_number(), 0, 0});
  }
  if (ahead) make(*ahead);
}

void Stage::apply(bool in_place, double lr, const std::optional<Ahead>& ahead) {
  auto [from, to] = weights_.advance(in_place);
  const OptimizerStep step{.layout = layout_,
                           .gradients = gradients_,
                           .weights = from,
                           .next = to,
                           .state = state_,
                           .lr = lr,
                           .made = copying({weights_.latest_number(), 0, 0}),
                           .loss_scale = scale()};
  const at::Tensor before = parts_.drift_decay && in_place ? from.clone() : from;
  const bool by_drift = ahead && ahead->rule.kind == PredictionRule::Kind::Drift;
  if (ahead && !by_drift)
    step_and_predict(*parts_.optimizer, step, add_prediction(*ahead));
  else
    parts_.optimizer->step(step);
  if (weights_.has_copies() && !step.made) weights_.copy({weights_.latest_number(), 0, 0});
  if (parts_.drift_decay)
    state_.drift.mul_(*parts_.drift_decay).add_(to - before, 1 - *parts_.drift_decay);
  if (by_drift)
    make(*ahead);
  else if (ahead && weights_.has_copies() && !step.made)
    weights_.copy(ahead->key);
}

}  // namespace pipewright
