// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/layer_measurement.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/measuring/layer_count.h"
#include "core/nn/memory_format.h"
#include "core/runtime/devices/device_stream.h"
#include "core/runtime/devices/memory_count.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr int kFewest = 3, kMost = 50;  // limits of repetitions within a time budget

using WeakMemory = std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>;

bool is_floating(const at::Tensor& tensor) {
  return tensor.is_floating_point();
}

WeakMemory memory_of(const Tensors& tensors) {
  WeakMemory memory;
  for (const at::Tensor& tensor : tensors) memory.push_back(tensor.storage().getWeakStorageImpl());
  return memory;
}

/// Index of the first tensor with the same memory.
std::size_t first_of(const Boundary& boundary, std::size_t tensor) {
  const auto first = std::ranges::find(boundary.memory, boundary.memory[tensor]);
  return static_cast<std::size_t>(first - boundary.memory.begin());
}

void keep(Boundary::Memory& memory, std::vector<LayerCost>& costs) {
  if (!memory.kept && memory.layer) costs[*memory.layer].activation_bytes += memory.bytes;
  memory.kept = true;
}

at::TensorOptions options_of(const Experiment& e, at::Device device) {
  return at::TensorOptions(e.train.precision.weights).device(device);
}

}  // namespace

LayerMeasurement::LayerMeasurement(const Experiment& e, const MeasuredLayer& measured,
                                   const Boundary& inputs, const at::Tensor& targets,
                                   at::Device device)
    : layer_(*measured.layer),
      index_(measured.index),
      last_(measured.last),
      loss_(*e.loss),
      inputs_(inputs),
      targets_(targets),
      options_(options_of(e, device)),
      values_(e.train.precision.values),
      channels_last_(e.layout.channels_last.value_or(false)),
      relays_(index_ > 0 && std::ranges::any_of(inputs.tensors, is_floating)),
      stage_({.last = last_,
              .layers = {measured.layer},
              .options = options_,
              .narrow = e.train.precision.narrow(),
              .channels_last = channels_last_,
              .optimizer = e.optimizer.get(),
              .loss = e.loss.get()},
             e.train.seed),
      learns_(!stage_.weights().leaves().empty()) {}

LayerTimes LayerMeasurement::measure_times(int repetitions, double seconds) {
  LayerTimes times;
  pass(learns_, relays_);
  timed_ = learns_;
  const double end = now() + seconds;
  const auto enough = [&](int done) {
    if (repetitions > 0) return done == repetitions;
    return done >= kMost || (done >= kFewest && now() > end);
  };
  for (int done = 0; !enough(done); ++done) {
    const auto [of_forward, of_backward] = pass(learns_, relays_);
    times.forwards.push_back(of_forward);
    if (learns_ || relays_) times.backwards.push_back(of_backward);
    if (learns_ && relays_) {
      times.inputs.push_back(pass(false, true).second);
      times.weights.push_back(pass(true, false).second);
    }
    if (learns_) times.updates.push_back(update());
  }
  return times;
}

void LayerMeasurement::measure_peak(LayerCost& cost) {
  if (timed_) update();  // drops the gradients
  MemoryCount count(options_.device());
  const auto most = [&](const auto& act) {
    const std::int64_t before = count.live();
    count.forget_peak();
    act();
    return count.peak() - before;
  };
  std::int64_t of_forward = most([&] { forward(); });
  of_forward -= count.live();
  const std::int64_t first =
      most([&] { backward(learns_, relays_); }) - (cost.parameter_bytes - cost.copy_bytes);
  const auto add = [&] {
    forward();
    return most([&] { backward(learns_, relays_); });
  };
  std::int64_t adding = add();
  if (cost.copy_bytes > 0) adding = std::max(adding - cost.copy_bytes, add());  // sums become wide
  cost.peak_bytes = std::max({of_forward, first, std::int64_t{0}});
  cost.peak_adding_bytes = std::max(adding, cost.peak_bytes);
}

/// Drops every reference to inputs and outputs: the memory that remains is what the graph keeps.
Boundary LayerMeasurement::measure_kept(std::vector<LayerCost>& costs) {
  const at::AutoGradMode record(true);
  const MemoryCount count(options_.device());
  Tensors x = inputs_with_history();
  const WeakMemory x_memory = memory_of(x);
  const std::int64_t before = count.live();
  Tensors y = run(x);
  at::Tensor loss = last_ ? loss_(y[0], targets_) : at::Tensor();
  std::vector<std::shared_ptr<torch::autograd::Node>> graph;
  for (const at::Tensor& tensor : y) graph.push_back(tensor.grad_fn());
  if (last_) graph.push_back(loss.grad_fn());
  Boundary outputs = boundary_of(y, x);
  const WeakMemory y_memory = memory_of(y);
  y.clear();
  loss.reset();
  costs[index_].activation_bytes += count.live() - before;
  for (std::size_t i = 0; i < y_memory.size(); ++i)
    if (outputs.memory[i]->layer == index_ && !y_memory[i].expired())
      outputs.memory[i]->kept = true;  // counted above
  x.clear();
  for (std::size_t i = 0; i < x_memory.size(); ++i)
    if (!x_memory[i].expired()) keep(*inputs_.memory[i], costs);
  if (last_)
    for (const auto& output : outputs.memory) keep(*output, costs);
  graph.clear();
  if (learns_) costs[index_].half_bytes = std::max<std::int64_t>(0, left_between_halves());
  return outputs;
}

/// Copies of the inputs with a graph node behind them. No other reference to their memory exists,
/// and that node saves none of it.
Tensors LayerMeasurement::inputs_with_history() const {
  const at::Tensor zero = at::zeros({}, options_.dtype(values_)).set_requires_grad(relays_);
  Tensors all;
  for (std::size_t i = 0; i < inputs_.tensors.size(); ++i) {
    const at::Tensor& tensor = inputs_.tensors[i];
    if (const std::size_t first = first_of(inputs_, i); first < i)
      all.push_back(all[first].view(tensor.sizes()));
    else
      all.push_back(is_floating(tensor) ? tensor + zero : tensor.clone());
  }
  return all;
}

/// The boundary behind the layer, with copies of its outputs, so that their memory can be freed. An
/// input passed on still belongs to the layer that allocated it.
Boundary LayerMeasurement::boundary_of(const Tensors& outputs, const Tensors& inputs) const {
  const MemoryCount others(options_.device());  // keeps the copies out of the outer count
  Boundary boundary;
  for (const at::Tensor& output : outputs) {
    const auto same = [&](const at::Tensor& other) { return other.is_alias_of(output); };
    const auto input = std::ranges::find_if(inputs, same);
    const auto before = std::ranges::find_if(outputs, same) - outputs.begin();
    const auto position = static_cast<std::size_t>(before);
    const bool shared = position < boundary.tensors.size();
    if (shared && boundary.tensors[position].numel() == output.numel()) {
      boundary.tensors.push_back(boundary.tensors[position].view(output.sizes()));
      boundary.memory.push_back(boundary.memory[position]);
      continue;
    }
    boundary.tensors.push_back(output.detach().clone(memory_format(output, channels_last_)));
    if (input != inputs.end())
      boundary.memory.push_back(inputs_.memory[static_cast<std::size_t>(input - inputs.begin())]);
    else
      boundary.memory.push_back(std::make_shared<Boundary::Memory>(
          Boundary::Memory{index_, static_cast<std::int64_t>(output.nbytes())}));
  }
  return boundary;
}

Tensors LayerMeasurement::run(const Tensors& inputs) {
  std::vector<at::Tensor> buffers;
  for (const auto& [name, buffer] : stage_.named_buffers()) buffers.push_back(buffer);
  return layer_.forward_all(inputs, stage_.weights().leaves(), buffers, {.format = values_});
}

void LayerMeasurement::forward() {
  Tensors fresh = inputs_.tensors;
  for (at::Tensor& tensor : fresh) tensor = tensor.detach();
  outputs_ = stage_.forward(0, std::move(fresh), {}, relays_);
  if (last_) stage_.final_loss(0, targets_);
}

Stage::BackwardRequest LayerMeasurement::request(bool learn, bool relay) {
  Stage::BackwardRequest request{.own_loss = last_, .learn = learn, .input_gradient = relay};
  for (const at::Tensor& output : outputs_)
    if (is_floating(output)) request.gradients.push_back(at::ones_like(output));
  for (auto lent = request.gradients.end() - lent_behind(layer_); lent != request.gradients.end();
       ++lent)
    lent->reset();  // it comes once per mini-batch
  outputs_.clear();
  return request;
}

void LayerMeasurement::backward(bool learn, bool relay) {
  stage_.backward(0, request(learn, relay));
}

std::int64_t LayerMeasurement::left_between_halves() {
  constexpr int kLoss = 0;
  const MemoryCount count(options_.device());
  forward();
  const Tensors outputs = outputs_;
  const std::int64_t kept = count.live();
  Stage::BackwardRequest half = request(/*learn=*/false, relays_);
  half.half_of = kLoss;
  stage_.backward(0, std::move(half));
  const std::int64_t left = count.live() - kept;
  stage_.backward_weight(0, kLoss, /*scale=*/1);
  return left;
}

std::pair<double, double> LayerMeasurement::pass(bool learn, bool relay) {
  const double begin = now();
  forward();
  const double middle = now();
  backward(learn, relay);
  return {middle - begin, now() - middle};
}

double LayerMeasurement::update() {
  const double begin = now();
  stage_.update(/*in_place=*/true, /*lr=*/0);
  return now() - begin;
}

double LayerMeasurement::now() const {
  if (const at::Device device = options_.device(); !device.is_cpu())
    current_stream(device).synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace pipewright
