/// What each layer of a model costs on one device: measured by `pipewright profile`, or counted on
/// the meta device (bytes and operations, no times). Partitioning and simulation read it.
///
/// Kept as a YAML file of the fields below under their names:
///
///   pipewright_profile: 1          # the format
///   model: vgg16
///   …
///   layers:
///     - {name: conv1_1, forward: 0.0021, backward: 0.0043, …}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Of one micro-batch of Profile::samples samples. Seconds are 0 where only bytes were counted. The
/// last layer's have the loss in them.
struct LayerCost {
  std::string name;
  double forward = 0;                 ///< s
  double backward = 0;                ///< s, gradients of inputs and weights together
  double backward_input = 0;          ///< s, of the input alone
  double backward_weight = 0;         ///< s, of the weights alone, after the input's
  double update = 0;                  ///< s, of the optimizer on this layer's parameters
  double flops = 0;                   ///< of the forward; a multiply-add counts 2
  std::int64_t output_bytes = 0;      ///< all tensors at the boundary after the layer
  std::int64_t activation_bytes = 0;  ///< what the forward allocates and keeps for its backward
  /// Most that forward or backward hold beyond what is kept and the weights' gradients; the
  /// gradient that arrives is in it.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_adding_bytes = 0;  ///< of a backward that adds to gradients that are there
  std::int64_t parameters = 0;         ///< elements
  std::int64_t parameter_bytes = 0;
  std::int64_t buffer_bytes = 0;
  bool operator==(const LayerCost&) const = default;
};

struct Profile {
  std::string model;
  std::string digest;  ///< of the model's options, the loss and the optimizer
  std::string device = "cpu";
  std::string machine;  ///< host name of where it was measured; empty: not recorded
  std::string precision = "float32";
  std::int64_t samples = 1;
  int threads = 1;
  bool timed = false;            ///< false: counted on the meta device
  std::int64_t input_bytes = 0;  ///< of the micro-batch
  std::vector<LayerCost> layers;
  bool operator==(const Profile&) const = default;
};

/// As it is written: to_yaml() of it reads back as an equal profile.
Value profile_value(const Profile& profile);
/// Throws Error{Experiment} naming every place that is wrong: another format, fields missing,
/// unknown, negative or not finite, no layers, two layers of one name.
Profile read_profile(const Value& document);

}  // namespace pipewright
