// SPDX-License-Identifier: Apache-2.0
/// Measures one layer of a model by itself: the time and memory of its passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"
#include "core/measuring/layer_times.h"
#include "core/stage/stage.h"

namespace pipewright {

/// The tensors between two layers, and which layer allocated the memory of each.
struct Boundary {
  struct Memory {
    std::optional<std::size_t> layer;  ///< layer that allocated it; none: the model's input
    std::int64_t bytes = 0;
    bool kept = false;  ///< a backward needs it, that of its layer or of a layer that reads it
  };
  Tensors tensors;                              ///< detached from the graph
  std::vector<std::shared_ptr<Memory>> memory;  ///< one object for tensors that share memory
};

/// The thing that is measured: a layer of the model, or an auxiliary head, which is a last layer.
struct MeasuredLayer {
  LayerPtr layer;
  std::size_t index;  ///< layers before it
  bool last;          ///< the loss belongs to it
};

/// The layer as a stage of its own, on the outputs of the layers before it. The last layer includes
/// the loss. The first layer's inputs get no gradient, as in a pipeline.
class LayerMeasurement {
 public:
  LayerMeasurement(const Experiment& experiment, const MeasuredLayer& measured,
                   const Boundary& inputs, const at::Tensor& targets, at::Device device);

  /// Measures times after a warm-up, of so many repetitions or, with 0, of 3 to 50 within
  /// `seconds`.
  LayerTimes measure_times(int repetitions, double seconds);
  /// Measures the peak of memory beyond the kept activations and the weights' gradients.
  void measure_peak(LayerCost& cost);
  /// Measures activation bytes: adds the memory that the layer allocates and keeps for its backward
  /// to its own cost, and inputs that it keeps to the costs of the layers that allocated them, each
  /// once. Of a layer with parameters it measures half_bytes, too. Returns its outputs.
  Boundary measure_kept(std::vector<LayerCost>& costs);

 private:
  void forward();
  Stage::BackwardRequest request(bool learn, bool relay);
  void backward(bool learn, bool relay);
  /// Bytes that the input half of a backward leaves behind beyond what the forward keeps, with the
  /// outputs, which the layer behind needs for its weights' half, too.
  std::int64_t left_between_halves();
  /// Seconds of a forward, and of a backward.
  std::pair<double, double> pass(bool learn, bool relay);
  double update();
  double now() const;
  Tensors inputs_with_history() const;
  Tensors run(const Tensors& inputs);
  Boundary boundary_of(const Tensors& outputs, const Tensors& inputs) const;

  const Layer& layer_;
  std::size_t index_;
  bool last_;
  const Loss& loss_;
  const Boundary& inputs_;
  const at::Tensor& targets_;
  at::TensorOptions options_;
  at::ScalarType values_;  ///< format of activations
  bool channels_last_;     ///< images are in channels-last memory
  bool relays_;            ///< its inputs get a gradient
  Stage stage_;
  bool learns_;         ///< the layer has parameters
  bool timed_ = false;  ///< gradients of timed passes are still there
  Tensors outputs_;
};

}  // namespace pipewright
