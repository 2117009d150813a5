// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/weight_work.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/nn/meta/operation_count.h"
#include "core/optim/optimizer_groups.h"
#include "core/runtime/devices/device_stream.h"
#include "core/schedule/versions.h"
#include "core/stage/stage.h"
#include "core/stage/weight_store.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr int kFewestWorks = 3, kMostWorks = 50;  // limits of repetitions within a time budget
constexpr double kDriftMoves = 10;                // Stage::apply: a copy, a difference, two sums

/// Weights of one layer with their gradients and the state of an optimizer that predicts.
class WeightWork {
 public:
  WeightWork(const Optimizer& optimizer, const Layer& layer,
             const std::vector<at::Tensor>& parameters, bool predicts)
      : optimizer_(optimizer) {
    NamedShapes shapes;
    const std::vector<ParameterSpec> specs = layer.parameters();
    for (const at::Tensor& parameter : parameters) {
      shapes.emplace_back(parameter_name(layer, specs[shapes.size()].name),
                          parameter.sizes().vec());
      gradients_.push_back(at::zeros_like(parameter));
    }
    const at::TensorOptions options = parameters.front().options();
    layout_ = flat_layout(shapes, static_cast<std::int64_t>(parameters.front().element_size()));
    for (at::Tensor* flat : {&weights_, &next_, &ahead_})
      *flat = at::zeros({layout_.size}, options);
    state_ = fresh_state(optimizer, layout_, options, predicts, /*keep_gradient=*/false);
  }

  void update() { optimizer_.step(step(weights_)); }
  void update_to_new_version() { optimizer_.step(step(next_)); }
  void predict() { pipewright::predict(optimizer_, prediction()); }
  void update_and_predict() { step_and_predict(optimizer_, step(weights_), prediction()); }

 private:
  OptimizerStep step(at::Tensor& next) {
    return {.layout = layout_,
            .gradients = gradients_,
            .weights = weights_,
            .next = next,
            .state = state_};
  }
  Prediction prediction() {
    return {.weights = weights_, .ahead = ahead_, .state = state_, .rule = {}, .steps = 1, .lr = 0};
  }

  const Optimizer& optimizer_;
  FlatLayout layout_;
  std::vector<at::Tensor> gradients_;
  at::Tensor weights_, next_, ahead_;
  OptimizerState state_;
};

double seconds_now(at::Device device) {
  if (!device.is_cpu()) current_stream(device).synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The optimizer that steps a parameter.
const Optimizer& owner_of(const Optimizer& all, const std::string& parameter) {
  const OptimizerGroup* const group = group_of(all.groups(), parameter);
  return group == nullptr ? all : *group->optimizer;
}

WeightMoves moves_of(const LayerPtr& layer, const Optimizer& optimizer,
                     const Predictions& predictions) {
  constexpr std::int64_t kBytes = 4;  // of a number; moves are counted in tensors
  const FlatLayout layout = flat_layout(parameter_shapes({layer}), kBytes);
  double weights = 0, read = 0;
  for (const FlatLayout::Entry& entry : layout.entries) {
    const auto size = static_cast<double>(entry.size);
    weights += size;
    read += size * owner_of(optimizer, entry.name).slots_predicted_from();
  }
  if (weights == 0) return {};
  const double kept = predictions.by_lookahead ? 1 : 0;
  const auto slots = static_cast<double>(optimizer.slot_names(predictions.any).size());
  const auto tables = static_cast<double>(numbers_in_tables(optimizer, layout, predictions.any));
  WeightMoves moves{.update = 3 + kept + 2 * (slots + tables / weights),
                    .prediction = 2 + kept + read / weights};
  if (predictions.by_drift) {
    moves.update += kDriftMoves;
    moves.prediction = moves.fused_prediction = 3;
  }
  return moves;
}

}  // namespace

std::vector<WeightMoves> weight_moves(const Experiment& experiment,
                                      const std::vector<LayerPtr>& layers) {
  const Schedule schedule =
      experiment.scheme->schedule(experiment.shape(2 * experiment.pipeline.stages + 2));
  const Predictions predictions = predictions_of(schedule);
  std::vector<WeightMoves> all;
  for (const LayerPtr& layer : layers)
    all.push_back(layer ? moves_of(layer, *experiment.optimizer, predictions) : WeightMoves());
  return all;
}

void count_update(LayerCost& cost, const Optimizer& optimizer, const Layer& layer,
                  const std::vector<at::Tensor>& parameters) {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> shapes;
  for (const at::Tensor& parameter : parameters)
    shapes.push_back(at::empty_like(parameter, parameter.options().device(at::kMeta)));
  WeightWork work(optimizer, layer, shapes, /*predicts=*/false);
  work.update();  // the first may be another one
  const OperationCount operations;
  work.update();
  cost.update_flops = operations.flops();
  cost.update_kernels = operations.kernels();
}

void measure_weight_times(LayerCost& cost, const Optimizer& optimizer, const Layer& layer,
                          const std::vector<at::Tensor>& parameters, int repetitions,
                          double seconds) {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Device device = parameters.front().device();
  WeightWork work(optimizer, layer, parameters, /*predicts=*/true);
  constexpr std::array kWorks{&WeightWork::update, &WeightWork::update_to_new_version,
                              &WeightWork::predict, &WeightWork::update_and_predict};
  std::array<std::vector<double>, kWorks.size()> times;
  for (const auto each : kWorks) (work.*each)();
  const double end = seconds_now(device) + seconds;
  const auto enough = [&](int done) {
    if (repetitions > 0) return done == repetitions;
    return done >= kMostWorks || (done >= kFewestWorks && seconds_now(device) > end);
  };
  for (int done = 0; !enough(done); ++done)
    for (std::size_t i = 0; i < kWorks.size(); ++i) {
      const double begin = seconds_now(device);
      (work.*kWorks[i])();
      times[i].push_back(seconds_now(device) - begin);
    }
  const double in_place = middle_of(times[0]);
  cost.new_version = std::max(0.0, middle_of(times[1]) - in_place);
  cost.prediction = middle_of(times[2]);
  cost.fused_prediction = std::max(0.0, middle_of(times[3]) - in_place);
}

}  // namespace pipewright
