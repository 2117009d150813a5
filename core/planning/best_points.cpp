// SPDX-License-Identifier: Apache-2.0
#include "core/planning/best_points.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr const char* kWorkers = "workers";
constexpr const char* kStages = "pipeline.stages";

struct Letter {
  const char* key;
  const char* letter;
  const char* meaning;
};
constexpr std::array kLetters = {Letter{"pipeline.microbatches", "M", "micro-batches"},
                                 Letter{kStages, "N", "stages"},
                                 Letter{"pipeline.replicas", "R", "replicas"}};

/// The distinct values of a key, ascending if all are numbers, else in order of appearance.
std::vector<std::string> values_of(const SimulatedSweep& sweep, const std::string& key) {
  std::vector<std::string> values;
  for (const SimulatedPoint& point : sweep.points) {
    if (key == kWorkers && point.workers == 0) continue;
    const std::string text = key.empty() ? std::string() : sweep.text_of(point, key);
    if (std::ranges::count(values, text) == 0) values.push_back(text);
  }
  if (std::ranges::all_of(values,
                          [](const auto& value) { return parsed<double>(value).has_value(); }))
    std::ranges::sort(values, {}, [](const auto& value) { return *parsed<double>(value); });
  return values;
}

/// The key of the x axis if none is asked for.
std::string default_x(const SimulatedSweep& sweep) {
  for (const char* part : {"bandwidth_gb_per_s", "hardware."})
    for (const std::string& key : sweep.keys)
      if (key.starts_with("hardware.") && key.find(part) != std::string::npos) return key;
  return {};
}

void check_axis(const SimulatedSweep& sweep, const std::string& key, const char* option) {
  std::vector<std::string> known = sweep.keys;
  known.emplace_back(kWorkers);
  if (std::ranges::count(known, key) == 0)
    throw Error(
        ErrorKind::Experiment,
        concat(option, " is '", key, "', which the sweep does not vary", suggestion(key, known)));
}

bool is_chosen(const std::string& key) {
  return key == "label" || key.starts_with("scheme") || key.starts_with("pipeline");
}

/// Keys whose values the name of a candidate says already.
bool is_named(const SimulatedSweep& sweep, const std::string& key) {
  const bool labelled = std::ranges::count(sweep.keys, "label") > 0;
  return key == "label" || key == "scheme.name" || (labelled && key.starts_with("scheme"));
}

/// Whether a is to be preferred: faster, or as fast with less memory.
bool is_better(const SimulatedPoint& a, const SimulatedPoint& b) {
  constexpr double kEqual = 1e-6;
  const double fast = std::max(a.samples_per_second, b.samples_per_second);
  if (std::abs(a.samples_per_second - b.samples_per_second) > kEqual * fast)
    return a.samples_per_second > b.samples_per_second;
  return a.largest_peak() < b.largest_peak();
}

void choose(const SimulatedSweep& sweep, const std::vector<std::string>& candidates,
            BestCell& cell) {
  std::map<std::string, std::size_t> fastest;  // of each candidate
  for (const std::size_t i : cell.points) {
    const SimulatedPoint& point = sweep.points[i];
    if (!point.fits()) continue;
    const auto [known, added] = fastest.emplace(point.candidate, i);
    if (!added && is_better(point, sweep.points[known->second])) known->second = i;
  }
  std::vector<std::size_t> ranking;
  for (const std::string& candidate : candidates)
    if (const auto found = fastest.find(candidate); found != fastest.end())
      ranking.push_back(found->second);
  for (const std::size_t i : ranking)
    if (!cell.best || is_better(sweep.points[i], sweep.points[*cell.best])) cell.best = i;
  if (!cell.best) return;
  cell.alone = ranking.size() == 1 && candidates.size() > 1;
  const double least = (1 - kNear) * sweep.points[*cell.best].samples_per_second;
  for (const std::size_t i : ranking)
    if (i != *cell.best && sweep.points[i].samples_per_second >= least) cell.near.push_back(i);
  std::ranges::stable_sort(cell.near, [&](std::size_t a, std::size_t b) {
    return is_better(sweep.points[a], sweep.points[b]);
  });
}

}  // namespace

BestPoints best_points(const SimulatedSweep& sweep, std::string x, std::string y) {
  BestPoints best{.x = x.empty() ? default_x(sweep) : std::move(x),
                  .y = y.empty() ? kWorkers : std::move(y)};
  if (!best.x.empty()) check_axis(sweep, best.x, "--x");
  check_axis(sweep, best.y, "--y");
  best.x_values = values_of(sweep, best.x);
  best.y_values = values_of(sweep, best.y);
  for (const SimulatedPoint& point : sweep.points)
    if (std::ranges::count(best.candidates, point.candidate) == 0)
      best.candidates.push_back(point.candidate);
  for (const std::string& key : sweep.keys) {
    if (key == best.x || key == best.y) continue;
    if (!is_chosen(key))
      best.conditions.push_back(key);
    else if (!is_named(sweep, key))
      best.choices.push_back(key);
  }
  std::map<std::vector<std::string>, std::size_t> maps;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SimulatedPoint& point = sweep.points[i];
    std::vector<std::string> conditions;
    for (const std::string& key : best.conditions) conditions.push_back(sweep.text_of(point, key));
    const auto [map, added] = maps.emplace(conditions, best.maps.size());
    if (added)
      best.maps.push_back({conditions, std::vector(best.y_values.size(),
                                                   std::vector<BestCell>(best.x_values.size()))});
    const auto at = [&](const std::vector<std::string>& values, const std::string& key) {
      return std::ranges::find(values, key.empty() ? key : sweep.text_of(point, key)) -
             values.begin();
    };
    const auto row = static_cast<std::size_t>(at(best.y_values, best.y));
    if (row == best.y_values.size()) continue;  // refused before its workers were known
    const auto column = static_cast<std::size_t>(at(best.x_values, best.x));
    best.maps[map->second].cells[row][column].points.push_back(i);
  }
  for (BestMap& map : best.maps)
    for (auto& row : map.cells)
      for (BestCell& cell : row) choose(sweep, best.candidates, cell);
  return best;
}

std::string choices_text(const SimulatedSweep& sweep, const BestPoints& best, std::size_t i) {
  const SimulatedPoint& point = sweep.points[i];
  std::vector<std::string> parts;
  for (const std::string& key : best.choices) {
    const std::string text = sweep.text_of(point, key);
    if (text == "–" || (key == kStages && text == std::to_string(point.workers))) continue;
    const auto* letter = std::ranges::find(kLetters, key, &Letter::key);
    parts.push_back(
        concat(letter == kLetters.end() ? short_key(key) : std::string(letter->letter), " ", text));
  }
  return join(parts, ", ");
}

std::string why_none(const SimulatedSweep& sweep, const BestCell& cell) {
  return std::ranges::any_of(cell.points,
                             [&](std::size_t i) { return sweep.points[i].simulated(); })
             ? "none fits"
             : "refused";
}

std::string choices_legend(const BestPoints& best) {
  std::vector<std::string> parts;
  for (const Letter& letter : kLetters)
    if (std::ranges::count(best.choices, letter.key) > 0)
      parts.push_back(concat(letter.letter, ": ", letter.meaning));
  return join(parts, ", ");
}

std::string conditions_text(const BestPoints& best, const BestMap& map) {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < best.conditions.size(); ++c) {
    const bool number = parsed<double>(map.conditions[c]).has_value();
    parts.push_back(concat(short_key(best.conditions[c]), number ? " " : ": ", map.conditions[c]));
  }
  return join(parts, ", ");
}

}  // namespace pipewright
