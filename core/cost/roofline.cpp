// SPDX-License-Identifier: Apache-2.0
#include "core/cost/roofline.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

constexpr double kUpdateMoves = 5;

}  // namespace

Profile with_modelled_times(Profile counted, const DeviceRates& rates) {
  PIPEWRIGHT_CHECK(rates.known() && rates.efficiency > 0, "a device without rates has no times");
  const bool narrow = (counted.precision == "bfloat16" || counted.precision == "float16") &&
                      rates.bfloat16_flops > 0;
  const double flops = rates.efficiency * (narrow ? rates.bfloat16_flops : rates.flops);
  std::int64_t input = counted.input_bytes;
  for (LayerCost& layer : counted.layers) {
    const std::int64_t weights = layer.copy_bytes > 0 ? layer.copy_bytes : layer.parameter_bytes;
    const auto moved =
        static_cast<double>(input + std::max(layer.output_bytes, layer.activation_bytes) + weights);
    layer.forward = std::max(layer.flops / flops, moved / rates.bandwidth);
    layer.backward_input = layer.forward;
    layer.backward_weight = layer.parameters > 0 ? layer.forward : 0;
    layer.backward = layer.backward_input + layer.backward_weight;
    layer.update = (kUpdateMoves * static_cast<double>(layer.parameter_bytes) +
                    static_cast<double>(layer.copy_bytes)) /
                   rates.bandwidth;
    input = layer.output_bytes;
  }
  counted.timed = true;
  return counted;
}

}  // namespace pipewright
