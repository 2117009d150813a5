// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/layer_times.h"

#include <algorithm>
#include <map>

#include "core/base/median.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Layers with equal keys do the same work. `reads`: bytes that come from the layer before.
std::string work_of(const LayerCost& cost, const LayerTimes& times, std::int64_t reads, bool last) {
  return concat(cost.flops, " ", cost.kernels, " ", cost.update_flops, " ", cost.update_kernels,
                " ", cost.parameters, " ", cost.parameter_bytes, " ", cost.buffer_bytes, " ",
                cost.output_bytes, " ", cost.peak_bytes, " ", reads, " ", times.inputs.empty(), " ",
                last);
}

/// The distance between the quartiles.
double middle_half(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[3 * (values.size() - 1) / 4] - values[(values.size() - 1) / 4];
}

}  // namespace

void LayerTimes::give(LayerCost& cost) const {
  cost.forward = median(forwards);
  cost.backward = median(backwards);
  cost.update = median(updates);
  const bool learns = !updates.empty();
  cost.backward_input = learns ? median(inputs) : cost.backward;
  cost.backward_weight = !learns ? 0 : weights.empty() ? cost.backward : median(weights);
}

double pool_equal_layers(Profile& profile, const std::vector<LayerTimes>& times) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < times.size(); ++i)
    groups[work_of(profile.layers[i], times[i],
                   i == 0 ? profile.input_bytes : profile.layers[i - 1].output_bytes,
                   i + 1 == times.size())]
        .push_back(i);
  double spread = 0, seconds = 0;
  for (const auto& [work, layers] : groups) {
    LayerTimes all;
    for (const std::size_t i : layers) {
      append(all.forwards, times[i].forwards);
      append(all.backwards, times[i].backwards);
      append(all.inputs, times[i].inputs);
      append(all.weights, times[i].weights);
      append(all.updates, times[i].updates);
    }
    for (const std::size_t i : layers) all.give(profile.layers[i]);
    const auto count = static_cast<double>(layers.size());
    spread += count * (middle_half(all.forwards) + middle_half(all.backwards));
    seconds += count * (median(all.forwards) + median(all.backwards));
  }
  return seconds > 0 ? spread / seconds : 0;
}

}  // namespace pipewright
