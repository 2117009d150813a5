// SPDX-License-Identifier: Apache-2.0
#include "core/cost/roofline.h"

#include <algorithm>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr double kTeraOperations = 1e12;

std::string tera_text(double flops) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", flops / kTeraOperations);
  return text;
}

}  // namespace

FormatRate format_rate(const DeviceRates& rates, std::string_view precision) {
  const auto has = [](double flops) { return flops > 0; };
  FormatRate rate{.format = std::string(precision), .taken_for = std::string(precision)};
  const double own = precision == "float16"    ? rates.float16_flops
                     : precision == "bfloat16" ? rates.bfloat16_flops
                     : precision == "float64"  ? rates.float64_flops
                                               : rates.flops;
  if (own == DeviceRates::kLacksFormat) return rate;
  rate.flops = own;
  if (has(own)) return rate;
  const bool as_bfloat16 = precision == "float16" && has(rates.bfloat16_flops);
  rate.taken_for = as_bfloat16 ? "bfloat16" : "float32";
  rate.flops = as_bfloat16 ? rates.bfloat16_flops : rates.flops;
  return rate;
}

std::string rate_text(const DeviceRates& rates, std::string_view precision) {
  const FormatRate rate = format_rate(rates, precision);
  std::string text =
      concat(rate.format, " at ", tera_text(rate.flops), " × ", rates.efficiency, " TFLOPS");
  if (rate.taken_for != rate.format)
    text += concat(" (no rate for ", rate.format, ": ", rate.taken_for, "'s is taken)");
  return text;
}

Roofline::Roofline(const DeviceRates& rates, std::string_view precision) : rates_(rates) {
  PIPEWRIGHT_CHECK(rates.known() && rates.efficiency > 0, "a device without rates has no times");
  flops_ = rates.efficiency * format_rate(rates, precision).flops;
  PIPEWRIGHT_CHECK(flops_ > 0, "a device computes in no format that it lacks");
  const std::string_view wide = precision == "float64" ? precision : "float32";
  update_flops_ = rates.efficiency * format_rate(rates, wide).flops;
}

void Roofline::set_times(LayerCost& layer, std::int64_t input, bool sends,
                         const WeightMoves& moves) const {
  const std::int64_t weights =
      layer.borrowed_bytes + (layer.copy_bytes > 0 ? layer.copy_bytes : layer.parameter_bytes);
  const auto moved =
      static_cast<double>(input + std::max(layer.output_bytes, layer.activation_bytes) + weights);
  const auto launching = [&](std::int64_t kernels) {
    return rates_.launch * static_cast<double>(kernels);
  };
  const auto moving = [&](double tensors) {
    return (tensors * static_cast<double>(layer.parameter_bytes) +
            static_cast<double>(layer.copy_bytes)) /
           rates_.bandwidth;
  };
  layer.forward =
      std::max({layer.flops / flops_, moved / rates_.bandwidth, launching(layer.kernels)});
  layer.backward_input = sends ? layer.forward : 0;
  layer.backward_weight = layer.parameters > 0 || layer.borrowed_bytes > 0 ? layer.forward : 0;
  layer.backward = layer.backward_input + layer.backward_weight;
  layer.update = std::max(
      {layer.update_flops / update_flops_, moving(moves.update), launching(layer.update_kernels)});
  layer.prediction = moving(moves.prediction);
  layer.fused_prediction = rates_.launch > 0 ? layer.prediction : moving(moves.fused_prediction);
}

Profile Roofline::timed(Profile counted, const std::vector<WeightMoves>& moves) const {
  std::int64_t input = counted.input_bytes;
  for (std::size_t i = 0; i < counted.layers.size(); ++i) {
    set_times(counted.layers[i], input, /*sends=*/i > 0, moves[i]);
    input = counted.layers[i].output_bytes;
  }
  counted.timed = true;
  return counted;
}

}  // namespace pipewright
