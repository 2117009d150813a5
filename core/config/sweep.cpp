// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "core/base/wording.h"
#include "core/config/component_name.h"
#include "core/config/experiment_keys.h"
#include "core/config/merge.h"
#include "core/config/option_text.h"

namespace pipewright {
namespace {

constexpr std::size_t kMostRuns = 100'000;

/// Changes that one part of a sweep makes to one run: dotted keys and values, in order.
using Changes = std::vector<std::pair<std::string, Value>>;

bool cannot_vary(const std::string& key) {
  const ExperimentKey* known = find_experiment_key(split(key, '.').front());
  return known != nullptr && !known->may_vary;
}

/// Whether the key may vary and a label is a text; records a problem if not.
bool check_change(const std::string& path, const std::string& key, const Value& value,
                  Problems& problems) {
  if (cannot_vary(key)) {
    problems.add(value.key_place(), concat(path, ": '", key, "' cannot vary within a sweep"));
    return false;
  }
  if (key != "label") return true;
  if (value.is(Value::Kind::Text)) {
    check_component_name(value, path + ".label", problems);
    return true;
  }
  const bool scalar = value.items.empty() && value.fields.empty();
  problems.add(value.place,
               concat(path, ".label is ", value.shown(), "; expected a text",
                      scalar ? concat("; write \"", value.text, "\" in quotes") : std::string()));
  return false;
}

std::vector<Changes> read_points(const Value& points, Problems& problems) {
  if (points.is(Value::Kind::Null)) return {};
  if (!points.is(Value::Kind::Sequence)) {
    problems.add(points.place, concat("sweep.points is ", points.shown(),
                                      "; expected a list of mappings, one for each run"));
    return {};
  }
  std::vector<Changes> all;
  for (std::size_t i = 0; i < points.items.size(); ++i) {
    const Value& point = points.items[i];
    const std::string path = concat("sweep.points[", i, "]");
    if (!point.is(Value::Kind::Mapping)) {
      problems.add(point.place, concat(path, " is ", point.shown(),
                                       "; expected a mapping such as {pipeline.stages: 4}"));
      continue;
    }
    for (const auto& [key, value] : point.fields) check_change(path, key, value, problems);
    all.push_back(point.fields);
  }
  return all;
}

/// Reads the lists of `zip` or `grid`. Each must have values; a problem is recorded otherwise.
Changes read_lists(const Value& part, const std::string& path, Problems& problems) {
  if (part.is(Value::Kind::Null)) return {};
  if (!part.is(Value::Kind::Mapping)) {
    problems.add(part.place, concat(path, " is ", part.shown(),
                                    "; expected a mapping such as {train.seed: [1, 2, 3]}"));
    return {};
  }
  for (const auto& [key, list] : part.fields) {
    if (!list.is(Value::Kind::Sequence) || list.items.empty()) {
      const std::string shown = list.is(Value::Kind::Sequence) ? "an empty list" : list.shown();
      const bool scalar = list.items.empty() && list.fields.empty() && !list.text.empty();
      problems.add(list.place, concat(path, ".", key, " is ", shown, "; expected a list of values",
                                      scalar ? "; write [" + typed(list) + "]" : ""));
      continue;
    }
    for (const Value& value : list.items) {
      Value placed = value;
      placed.key_line = list.key_line;
      placed.key_column = list.key_column;
      check_change(path, key, placed, problems);
    }
  }
  return part.fields;
}

std::vector<Changes> zipped(const Changes& lists, Problems& problems) {
  std::vector<Changes> all;
  for (const auto& [key, list] : lists) {
    const std::size_t length = lists.front().second.items.size();
    if (list.items.size() != length) {
      problems.add(list.place,
                   concat("sweep.zip.", key, " has ", counted(list.items.size(), "value"),
                          "; expected ", length, ", as many as sweep.zip.", lists.front().first));
      return {};
    }
    all.resize(length);
    for (std::size_t i = 0; i < length; ++i) all[i].emplace_back(key, list.items[i]);
  }
  return all;
}

/// The product: every choice of `left` with every choice of `right`, which varies faster. An empty
/// side leaves the other as it is.
std::vector<Changes> crossed(const std::vector<Changes>& left, const std::vector<Changes>& right) {
  if (left.empty() || right.empty()) return left.empty() ? right : left;
  std::vector<Changes> all;
  for (const Changes& first : left) {
    for (const Changes& second : right) {
      all.push_back(first);
      all.back().insert(all.back().end(), second.begin(), second.end());
    }
  }
  return all;
}

/// Adds "scheme: {name: x, version: 1}" as scheme.name and scheme.version, the keys that tables
/// use.
void flatten(const std::string& key, const Value& value, Changes& out) {
  if (value.fields.empty()) {
    const auto known = std::ranges::find(out, key, &Changes::value_type::first);
    if (known == out.end())
      out.emplace_back(key, value);
    else
      known->second = value;
    return;
  }
  for (const auto& [name, field] : value.fields) flatten(concat(key, ".", name), field, out);
}

std::string joined_values(const Changes& varied) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : varied)
    texts.push_back(value.is(Value::Kind::Text) ? value.text : typed(value));
  return texts.empty() ? "run" : component_name_of(join(texts, "-"));
}

SweepPoint applied(const Value& base, const Changes& changes, Problems& problems) {
  SweepPoint point;
  point.document = base;
  std::optional<std::string> label;
  for (const auto& [key, value] : changes) {
    if (key == "label") {
      label = value.text;
      continue;
    }
    set_path(point.document, key, value, problems);
    // Where a mapping replaces a whole section, keys that were set in that section before no longer
    // vary.
    if (value.is(Value::Kind::Mapping) && value.find("name") != nullptr) {
      const std::string section = key + ".";
      std::erase_if(point.varied,
                    [&](const auto& entry) { return entry.first.starts_with(section); });
    }
    flatten(key, value, point.varied);
  }
  point.labelled = label.has_value();
  point.label = label.value_or(joined_values(point.varied));
  point.varied.emplace(point.varied.begin(), "label", Value::of(point.label));
  return point;
}

std::string run_digest(Value document) {
  std::erase_if(document.fields, [](const auto& field) { return field.first == "name"; });
  return digest(document);
}

/// The digest of a run without the hardware that it is simulated on, which changes no run.
std::string folder_digest(Value document) {
  std::erase_if(document.fields, [](const auto& field) { return field.first == "hardware"; });
  return run_digest(std::move(document));
}

void refuse_equal_runs(const std::vector<SweepPoint>& points, const Place& place,
                       Problems& problems) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [first, added] = seen.emplace(run_digest(points[i].document), i);
    if (!added)
      problems.add(place, concat("runs ", first->second + 1, " ('", points[first->second].label,
                                 "') and ", i + 1, " ('", points[i].label,
                                 "') of the sweep are the same; remove one of them"));
  }
}

constexpr std::string_view kSet = "--set ";

/// Adds the places, "--set KEY", of the scalars and empty lists that the command line has set.
void add_places_set(const Value& value, std::set<std::string>& places) {
  if (value.fields.empty() && value.items.empty() && value.place.file.starts_with(kSet))
    places.insert(value.place.file);
  for (const auto& [key, field] : value.fields) add_places_set(field, places);
  for (const Value& item : value.items) add_places_set(item, places);
}

/// Why no run has a value that was given at the key.
std::string why_lost(const std::string& key, const std::vector<SweepPoint>& points) {
  const auto has = [&](const SweepPoint& point) {
    return point.document.find_path(key) != nullptr;
  };
  return std::ranges::any_of(points, has)
             ? "the sweep gives every run a value of its own; change it in the sweep"
             : "the sweep gives every run a section of its own, without it; write it there";
}

/// Whether the value is an empty section that runs fill: its other keys are then the defaults.
bool is_filled(const Value& value, const std::string& key, const std::vector<SweepPoint>& points) {
  if (!value.is(Value::Kind::Null) && !value.is(Value::Kind::Mapping)) return false;
  return value.fields.empty() && std::ranges::any_of(points, [&](const SweepPoint& point) {
           const Value* const section = point.document.find_path(key);
           return section != nullptr && section->is(Value::Kind::Mapping);
         });
}

/// Whether a run has its value at the key, or no section for it, because of another file.
bool given_by_another_file(const std::string& file, const Value& run, std::string key) {
  const Value* value = run.find_path(key);
  while (value == nullptr && key.find('.') != std::string::npos) {
    key.resize(key.rfind('.'));
    value = run.find_path(key);
  }
  return value != nullptr && value->place.file != file && !value->place.file.starts_with(kSet);
}

/// Records each value of `file`, which extends the file with the sweep, that every run replaces.
void refuse_overridden(const std::string& file, const Value& base, const std::string& above,
                       const std::vector<SweepPoint>& points, Problems& problems) {
  for (const auto& [name, value] : base.fields) {
    const std::string key = concat(above, name);
    if (!value.fields.empty()) {
      refuse_overridden(file, value, key + ".", points, problems);
    } else if (value.place.file == file && !is_filled(value, key, points) &&
               std::ranges::all_of(points, [&](const auto& point) {
                 return given_by_another_file(file, point.document, key);
               })) {
      problems.add(value.key_place(),
                   concat(key, " has no effect, because ", why_lost(key, points)));
    }
  }
}

/// A value of the command line that every run replaces would be lost without a word.
void refuse_replaced(const Value& base, const std::vector<SweepPoint>& points, Problems& problems) {
  std::set<std::string> given, left;
  add_places_set(base, given);
  if (given.empty()) return;
  for (const SweepPoint& point : points) add_places_set(point.document, left);
  for (const std::string& place : given)
    if (const std::string key = place.substr(kSet.size());
        !left.contains(place) && !is_filled(*base.find_path(key), key, points))
      problems.add({place, 0, 0}, concat("has no effect, because ", why_lost(key, points)));
}

/// Records each value of one part of a sweep that `later`, the lists of another part, replace.
void refuse_given_twice(const std::string& path, const Changes& changes, const std::string& by,
                        const Changes& later, Problems& problems) {
  Changes flat;
  for (const auto& [key, value] : changes) flatten(key, value, flat);
  for (const auto& [key, value] : flat)
    if (std::ranges::find(later, key, &Changes::value_type::first) != later.end())
      problems.add(value.place, concat(path, " gives ", key, ", which ", by,
                                       " gives every run; expected it in one of the two"));
}

/// The changes of each run of the sweep, in order.
std::vector<Changes> read_sweep(const Value& sweep, Problems& problems) {
  static const std::vector<std::string> kParts = {"points", "zip", "grid"};
  if (!sweep.is(Value::Kind::Mapping)) {
    problems.add(sweep.place, concat("sweep is ", sweep.shown(),
                                     "; expected a mapping with points, zip or grid, such as "
                                     "{grid: {train.seed: [1, 2, 3]}}"));
    return {};
  }
  for (const auto& [key, value] : sweep.fields)
    if (std::ranges::count(kParts, key) == 0)
      problems.add(value.key_place(),
                   concat("unknown option 'sweep.", key, "'", suggestion(key, kParts)));
  const auto part = [&](const char* name) {
    const Value* value = sweep.find(name);
    return value == nullptr ? Value() : *value;
  };
  std::vector<Changes> runs = read_points(part("points"), problems);
  const Changes zip = read_lists(part("zip"), "sweep.zip", problems);
  const std::vector<Changes> together = zipped(zip, problems);
  const Changes grid = read_lists(part("grid"), "sweep.grid", problems);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string path = concat("sweep.points[", i, "]");
    refuse_given_twice(path, runs[i], "sweep.zip", zip, problems);
    refuse_given_twice(path, runs[i], "sweep.grid", grid, problems);
  }
  refuse_given_twice("sweep.zip", zip, "sweep.grid", grid, problems);
  if (!problems.empty()) return {};

  double count = static_cast<double>(std::max<std::size_t>(1, runs.size())) *
                 static_cast<double>(std::max<std::size_t>(1, together.size()));
  for (const auto& [key, list] : grid) count *= static_cast<double>(list.items.size());
  if (count > static_cast<double>(kMostRuns)) {
    problems.add(sweep.place, concat("the sweep has ", grouped_text(count), " runs; at most ",
                                     grouped_text(kMostRuns), " are possible"));
    return {};
  }
  runs = crossed(runs, together);
  for (const auto& field : grid) runs = crossed(runs, zipped({field}, problems));
  return runs;
}

}  // namespace

std::string SweepPoint::folder() const {
  constexpr std::size_t kLongest = 80;
  std::string name;
  for (const char c : label) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                         (c == '.' && !name.empty());
    if (allowed)
      name += c;
    else if (!name.ends_with('_'))
      name += '_';
  }
  return name.substr(0, kLongest) + "-" + folder_digest(document);
}

std::vector<SweepPoint> expand_sweep(const Value& document) {
  Problems problems;
  const Value base = what_may_vary(document);
  const Value* sweep = document.find("sweep");
  std::vector<Changes> runs;
  if (sweep != nullptr && !sweep->is(Value::Kind::Null)) runs = read_sweep(*sweep, problems);
  problems.throw_if_any();
  if (runs.empty()) return {SweepPoint{"run", {}, base}};
  std::vector<SweepPoint> points;
  for (const Changes& changes : runs) points.push_back(applied(base, changes, problems));
  refuse_equal_runs(points, sweep->place, problems);
  problems.throw_if_any();
  return points;
}

std::vector<SweepPoint> expand_sweep_alone(const Value& document) {
  std::vector<SweepPoint> points = expand_sweep(document);
  Problems problems;
  const Value base = what_may_vary(document);
  refuse_replaced(base, points, problems);
  refuse_overridden(document.place.file, base, "", points, problems);
  problems.throw_if_any();
  return points;
}

}  // namespace pipewright
