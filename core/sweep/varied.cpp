// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/varied.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {

std::vector<SweepPoint> points_of(const Value& document, const char* does) {
  std::vector<SweepPoint> points = expand_sweep_alone(document);
  if (points.front().varied.empty())
    throw Error(ErrorKind::Experiment,
                concat("the file has no sweep: --sweep ", does,
                       " the points of a section such as 'sweep: {grid: {pipeline.stages: [2, 4, "
                       "8]}}'; without --sweep the file itself is taken"),
                document.place.file);
  return points;
}

std::vector<std::string> varied_keys(const std::vector<SweepPoint>& points) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const SweepPoint& point : points)
    for (const auto& [key, value] : point.varied)
      if ((key != "label" || point.labelled) && seen.insert(key).second) keys.push_back(key);
  return keys;
}

Value value_of(const SweepPoint& point, const std::string& key) {
  const auto varied = std::ranges::find(point.varied, key, &std::pair<std::string, Value>::first);
  if (varied != point.varied.end()) return varied->second;
  const Value* given = point.document.find_path(key);
  return given == nullptr ? Value() : *given;
}

std::string candidate_of(const SweepPoint& point) {
  if (point.labelled) return point.label;
  const Value* name = point.document.find_path("scheme.name");
  return name != nullptr && name->is(Value::Kind::Text) ? name->text : "model_parallel";
}

}  // namespace pipewright
