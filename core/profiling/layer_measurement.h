/// One layer of a model measured by itself: how long its passes take, and what they hold.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"
#include "core/stage/stage.h"

namespace pipewright {

/// The tensors between two layers, and whose memory each is.
struct Boundary {
  struct Memory {
    std::optional<std::size_t> layer;  ///< that took it; none: the model's input
    std::int64_t bytes = 0;
    bool kept = false;  ///< for a backward, by that layer or by one that was given it
  };
  Tensors tensors;                              ///< without graph
  std::vector<std::shared_ptr<Memory>> memory;  ///< the same where two tensors share theirs
};

/// The layer as a stage of its own, on inputs that layers before it have made; a last layer with
/// the loss. The first layer's inputs get no gradient, as in a pipeline.
class LayerMeasurement {
 public:
  LayerMeasurement(const Experiment& experiment, std::size_t layer, const Boundary& inputs,
                   const at::Tensor& targets, at::Device device);

  /// Medians after a warm-up, of so many repetitions or, with 0, of as many as `seconds` allow.
  void measure_times(LayerCost& cost, int repetitions, double seconds);
  /// Beyond what is kept, and the weights' gradients.
  void measure_peak(LayerCost& cost);
  /// Adds what the layer takes and keeps to its cost, and inputs that it keeps to the costs of the
  /// layers that took their memory, each once. Returns its outputs.
  Boundary measure_kept(std::vector<LayerCost>& costs);

 private:
  void forward();
  void backward(bool learn, bool relay);
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
  bool relays_;  ///< its inputs get a gradient
  Stage stage_;
  bool learns_;         ///< it has parameters
  bool timed_ = false;  ///< and gradients of timed passes
  Tensors outputs_;
};

}  // namespace pipewright
