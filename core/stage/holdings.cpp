// SPDX-License-Identifier: Apache-2.0
#include "core/stage/holdings.h"

#include "core/tensors/torch.h"

namespace pipewright {

int Holdings::slots() const {
  return static_cast<int>(optimizer.slot_names(predictions.any).size()) + slots_of(gradient_rules) +
         (predictions.by_lookahead ? 1 : 0) + (predictions.by_drift ? 1 : 0) + disturbed;
}

std::int64_t Holdings::table_bytes(const NamedShapes& parameters) const {
  const auto each = static_cast<std::int64_t>(at::elementSize(precision.weights));
  return each * numbers_in_tables(optimizer, flat_layout(parameters, each), predictions.any);
}

std::vector<std::int64_t> Holdings::table_bytes(
    const std::vector<std::vector<LayerPtr>>& stages) const {
  std::vector<std::int64_t> bytes;
  if (optimizer.tables(predictions.any).empty()) return bytes;
  for (const std::vector<LayerPtr>& layers : stages)
    bytes.push_back(table_bytes(parameter_shapes(layers)));
  return bytes;
}

StageNeed Holdings::need(const NamedShapes& parameters, int copies) const {
  StageNeed need{.parameters = elements_of(parameters), .copies = copies};
  const auto wide = static_cast<double>(at::elementSize(precision.weights));
  const auto narrow = static_cast<double>(at::elementSize(precision.values));
  const double version = wide + (precision.narrow() ? narrow : 0);
  const double more = precision.narrow() ? disturbed_narrow * narrow : 0;
  const double state =
      need.parameters * (slots() * wide + more) + static_cast<double>(table_bytes(parameters));
  need.bytes = need.parameters * (copies * version + (sums ? wide : narrow)) + state;
  need.drained = need.parameters * version + state;
  return need;
}

}  // namespace pipewright
