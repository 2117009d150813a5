// SPDX-License-Identifier: Apache-2.0
/// The costs of each layer of a model on one device: measured by `pipewright profile`, or counted
/// on the meta device (bytes and operations, no times). Partitioning and simulation read it.
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
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// The costs of one layer for a micro-batch of Profile::samples samples. Seconds are 0 if only
/// bytes were counted. The costs of the last layer include the loss.
struct LayerCost {
  std::string name;
  double forward = 0;           ///< s
  double backward = 0;          ///< s, gradients of inputs and weights together
  double backward_input = 0;    ///< s, gradient of the input alone
  double backward_weight = 0;   ///< s, gradient of the weights alone, after the input's
  double update = 0;            ///< s, of the optimizer on this layer's parameters, in place
  double new_version = 0;       ///< s more if the update writes a new version and keeps the old one
  double prediction = 0;        ///< s to predict the parameters; 0: not measured
  double fused_prediction = 0;  ///< s more if the update makes the prediction, too
  /// s, forward, loss and backward of the auxiliary head that a stage which ends here would have,
  /// and the update of its parameters; 0: not measured
  double head = 0, head_update = 0;
  /// Peak bytes of that head's pass, as peak_bytes and peak_adding_bytes; 0: not measured
  std::int64_t head_peak = 0, head_peak_adding = 0;
  double flops = 0;          ///< operations of the forward; a multiply-add counts 2
  std::int64_t kernels = 0;  ///< operators that the forward starts on its device; 0: not counted
  double update_flops = 0;   ///< operations of the update's matrix products
  std::int64_t update_kernels = 0;    ///< operators of the update
  std::int64_t output_bytes = 0;      ///< all tensors at the boundary after the layer
  std::int64_t activation_bytes = 0;  ///< what the forward allocates and keeps for its backward
  /// Bytes that the input half of a backward keeps for the weights' half beside the activations:
  /// the gradients that reach operations with parameters
  std::int64_t half_bytes = 0;
  /// Peak bytes of forward or backward beyond what is kept and the weights' gradients; an arriving
  /// gradient is included.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_adding_bytes =
      0;                        ///< such a peak of a backward that adds to existing gradients
  std::int64_t parameters = 0;  ///< elements
  std::int64_t parameter_bytes = 0;
  std::int64_t copy_bytes = 0;      ///< in mixed precision, of the narrow copies of the parameters
  std::int64_t borrowed_bytes = 0;  ///< of parameters of other layers that it computes with
  std::int64_t buffer_bytes = 0;
  bool operator==(const LayerCost&) const = default;
};

struct Profile {
  std::string model;
  std::string digest;  ///< digest of the model's options, the loss and the optimizer
  std::string device = "cpu";
  std::string device_model;  ///< such as "Tesla V100-SXM2-16GB"; empty: not recorded
  std::string machine;       ///< host name of the machine that measured; empty: not recorded
  std::string measured;      ///< day of the measurement, "2026-11-24"; empty: not recorded
  std::string precision = "float32";
  std::string memory_format = "contiguous";  ///< in which it was measured; counted: contiguous
  std::int64_t samples = 1;
  int threads = 1;
  bool timed = false;            ///< false: counted on the meta device
  std::int64_t input_bytes = 0;  ///< bytes of a micro-batch at the first layer
  std::vector<LayerCost> layers;
  bool operator==(const Profile&) const = default;
};

/// The profile as a value; to_yaml() of it reads back as an equal profile.
Value profile_value(const Profile& profile);
/// Reads a profile. Throws Error{Experiment} naming every place that is wrong: another format,
/// fields missing, unknown, negative or not finite, no layers, two layers of one name.
Profile read_profile(const Value& document);
/// Reads a file. Throws Error{Experiment} also if it is no profile at all, without quoting it.
Profile load_profile(const std::filesystem::path& file);

}  // namespace pipewright
