// SPDX-License-Identifier: Apache-2.0
#include "core/planning/simulated_sweep.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/config/json.h"

namespace pipewright {

std::int64_t SimulatedPoint::largest_peak() const {
  return peaks.empty() ? 0 : *std::ranges::max_element(peaks);
}

std::size_t SimulatedSweep::count(SimulatedPoint::State state) const {
  return static_cast<std::size_t>(std::ranges::count(points, state, &SimulatedPoint::state));
}

std::string SimulatedSweep::text_of(const SimulatedPoint& point, const std::string& key) const {
  const auto found = std::ranges::find(keys, key);
  if (found == keys.end() && key == "workers" && point.workers > 0)
    return std::to_string(point.workers);
  if (found == keys.end()) return "–";
  const Value& value = point.values[static_cast<std::size_t>(found - keys.begin())];
  return value.is(Value::Kind::Null) ? "–" : plain_text(value);
}

}  // namespace pipewright
