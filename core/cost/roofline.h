// SPDX-License-Identifier: Apache-2.0
/// Times from counts: what a profile counted on the meta device would take on a device of known
/// rates. The roofline model takes the slower of computing and moving bytes (Williams, Waterman and
/// Patterson, 2009).
#pragma once

#include <string>
#include <string_view>

#include "core/cost/profile.h"
#include "core/cost/weight_moves.h"

namespace pipewright {

/// Peak operations per second are those of the data sheet, by number format. 0: the format has no
/// rate of its own, and that of another one is taken. kLacksFormat: the device has no such format.
struct DeviceRates {
  static constexpr double kLacksFormat = -1;

  bool known() const { return flops > 0 && bandwidth > 0; }

  double flops = 0;  ///< in float32; 0: not known
  double float16_flops = 0, bfloat16_flops = 0, float64_flops = 0;
  double bandwidth = 0;   ///< bytes per second of its memory
  double efficiency = 1;  ///< fraction of the peak that large layers reach, in (0, 1]
  double launch = 0;      ///< s that its host takes to start one operator on it

  bool operator==(const DeviceRates&) const = default;
};

/// The rate at which a device computes in a format.
struct FormatRate {
  double flops = 0;       ///< peak operations per second; 0: the device lacks the format
  std::string format;     ///< the wanted one
  std::string taken_for;  ///< the format whose rate it is: another one where that has none
};

/// The rate for a precision (`train.precision`). Where float16 has none it is bfloat16's, and where
/// that has none either, as for every other format, float32's.
FormatRate format_rate(const DeviceRates& rates, std::string_view precision);

/// "float16 at 15.7 × 0.5 TFLOPS (no rate for float16: float32's is taken)": peak and efficiency.
std::string rate_text(const DeviceRates& rates, std::string_view precision);

/// Seconds of layers whose operations and bytes are counted. A forward computes its operations and
/// moves its input, its parameters (in mixed precision their narrow copies), and the larger of its
/// output and its activations. Each half of a backward takes as long as the forward; a layer
/// without parameters has no weight half. An update and a prediction move the tensors that
/// WeightMoves says and write the copies, and an update takes at least as long as its matrix
/// products in the format of the weights. The host starts operators while the device computes those
/// before, so forwards and updates take at least `launch` for each of their kernels. Where
/// operators are launched, nothing is fused: the prediction that an update makes moves as much as
/// one by itself, as in the executor on any device but a CPU.
class Roofline {
 public:
  /// Requires rates > 0 and a format (`train.precision`) that the device has.
  Roofline(const DeviceRates& rates, std::string_view precision);

  /// Fills in the seconds of one layer, which reads so many bytes and, if it `sends`, makes the
  /// gradient of them.
  void set_times(LayerCost& layer, std::int64_t input_bytes, bool sends,
                 const WeightMoves& moves) const;
  /// Fills in those of a profile, with what the optimizer moves layer by layer. Nobody needs the
  /// gradient of the first layer's input, the data.
  Profile timed(Profile counted, const std::vector<WeightMoves>& moves) const;

 private:
  DeviceRates rates_;
  double flops_;         ///< per second of passes
  double update_flops_;  ///< of updates
};

}  // namespace pipewright
