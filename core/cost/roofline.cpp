// SPDX-License-Identifier: Apache-2.0
#include "core/cost/roofline.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {

Profile with_modelled_times(Profile counted, const DeviceRates& rates, const WeightMoves& moves) {
  PIPEWRIGHT_CHECK(rates.known() && rates.efficiency > 0, "a device without rates has no times");
  const bool narrow = (counted.precision == "bfloat16" || counted.precision == "float16") &&
                      rates.bfloat16_flops > 0;
  const double flops = rates.efficiency * (narrow ? rates.bfloat16_flops : rates.flops);
  std::int64_t input = counted.input_bytes;
  for (LayerCost& layer : counted.layers) {
    const std::int64_t weights = layer.copy_bytes > 0 ? layer.copy_bytes : layer.parameter_bytes;
    const auto moved =
        static_cast<double>(input + std::max(layer.output_bytes, layer.activation_bytes) + weights);
    const auto launching = [&](std::int64_t kernels) {
      return rates.launch * static_cast<double>(kernels);
    };
    const auto moving = [&](double tensors) {
      return (tensors * static_cast<double>(layer.parameter_bytes) +
              static_cast<double>(layer.copy_bytes)) /
             rates.bandwidth;
    };
    layer.forward =
        std::max({layer.flops / flops, moved / rates.bandwidth, launching(layer.kernels)});
    layer.backward_input = layer.forward;
    layer.backward_weight = layer.parameters > 0 ? layer.forward : 0;
    layer.backward = layer.backward_input + layer.backward_weight;
    layer.update = std::max(moving(moves.update), launching(layer.update_kernels));
    layer.prediction = moving(moves.prediction);
    layer.fused_prediction = rates.launch > 0 ? layer.prediction : moving(moves.fused_prediction);
    input = layer.output_bytes;
  }
  counted.timed = true;
  return counted;
}

}  // namespace pipewright
