// SPDX-License-Identifier: Apache-2.0
#include "core/reports/curves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/reports/moments.h"
#include "core/reports/published.h"
#include "core/reports/run_keys.h"

namespace pipewright {
namespace {

/// The values of a run's keys as a title: "vgg16, stages 4".
std::string title_of(const RunRecord& run, const std::vector<TableKey>& keys) {
  std::vector<std::string> parts;
  for (const TableKey& key : keys) parts.push_back(key_title(run, key.name));
  return join(parts, ", ");
}

template <class Named>
Named& named(std::vector<Named>& all, std::string Named::*name, const std::string& wanted) {
  const auto found = std::ranges::find(all, wanted, name);
  if (found != all.end()) return *found;
  all.emplace_back().*name = wanted;
  return all.back();
}

/// The runs of one curve.
struct Line {
  std::string name;
  std::vector<const RunRecord*> runs;
};

struct Lines {
  std::string title;
  std::vector<Line> lines;
};

/// Points of a curve. `hours`: modelled hours per epoch, or 1 if the x-axis has epochs.
std::vector<CurvePoint> points_of(const Line& line, const std::string& metric, double scale,
                                  double hours) {
  std::map<int, std::vector<double>> values;
  for (const RunRecord* run : line.runs) {
    const auto column = std::ranges::find(run->columns, metric);
    const auto epoch = std::ranges::find(run->columns, "epoch");
    if (column == run->columns.end() || epoch == run->columns.end()) continue;
    for (const std::vector<double>& row : run->epochs) {
      const double value = row.at(static_cast<std::size_t>(column - run->columns.begin()));
      const double at = row.at(static_cast<std::size_t>(epoch - run->columns.begin()));
      if (!std::isnan(value)) values[static_cast<int>(at)].push_back(scale * value);
    }
  }
  std::vector<CurvePoint> points;
  for (const auto& [epoch, all] : values) {
    const Moments moments = moments_of(all);
    points.push_back({.epoch = (epoch + 1.0) * hours,
                      .mean = moments.mean,
                      .std = all.size() > 1 ? moments.std() : 0,
                      .runs = static_cast<int>(all.size())});
  }
  return points;
}

/// Modelled hours per epoch: the mean over the line's runs, which usually differ only in their
/// seeds.
double hours_of_epoch(const Line& line) {
  double sum = 0, runs = 0;
  for (const RunRecord* run : line.runs)
    if (run->modelled_epoch_hours > 0) {
      sum += run->modelled_epoch_hours;
      ++runs;
    }
  return sum / std::max(1., runs);
}

bool check_columns(const PlotPublished& wanted, const PublishedNumbers& numbers,
                   Problems& problems) {
  constexpr const char* kWhat = "plot.published";
  bool fine = numbers.has(wanted.numbers.value.name, wanted.numbers.value.place, kWhat, problems);
  fine = numbers.has(wanted.epoch.name, wanted.epoch.place, kWhat, problems) && fine;
  for (const auto& [column, key] : wanted.numbers.match)
    fine = numbers.has(column, key.place, kWhat, problems) && fine;
  return fine;
}

/// The rows of the file that match the line's first run, without those that are not numbers.
std::vector<CurvePoint> published_points(const Line& line, const PlotPublished& wanted,
                                         const PublishedNumbers& numbers) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [column, key] : wanted.numbers.match)
    texts.emplace_back(column, key_text(*line.runs.front(), key.name));
  std::vector<CurvePoint> points;
  for (const std::size_t row : numbers.matching(texts)) {
    const auto epoch = published_number(numbers.rows[row][numbers.index_of(wanted.epoch.name)]);
    const auto value =
        published_number(numbers.rows[row][numbers.index_of(wanted.numbers.value.name)]);
    if (epoch && value)
      points.push_back({.epoch = *epoch - wanted.first_epoch + 1, .mean = *value, .runs = 1});
  }
  std::ranges::sort(points, {}, &CurvePoint::epoch);
  return points;
}

}  // namespace

std::vector<Picture> make_pictures(const PlotSpec& spec, const std::vector<RunRecord>& runs) {
  Problems problems;
  for (const TableKey& key : spec.pictures) check_key(key, "plot.pictures", runs, problems);
  for (const TableKey& key : spec.lines) check_key(key, "plot.lines", runs, problems);
  check_metric(spec.metric, "plot.metric", runs, problems);
  std::optional<PublishedNumbers> numbers;
  if (spec.published) {
    for (const auto& [column, key] : spec.published->numbers.match)
      check_key(key, "plot.published.match", runs, problems);
    numbers = read_published(spec.published->numbers.file);
    if (!check_columns(*spec.published, *numbers, problems)) numbers.reset();
  }
  problems.throw_if_any();

  std::vector<Lines> groups;
  for (const RunRecord& run : runs) {
    Lines& group = named(groups, &Lines::title, title_of(run, spec.pictures));
    named(group.lines, &Line::name, title_of(run, spec.lines)).runs.push_back(&run);
  }
  const bool percent = is_share(spec.metric.name);
  std::vector<Picture> pictures;
  for (const Lines& group : groups) {
    Picture picture{.title = group.title,
                    .metric = spec.metric.name,
                    .percent = percent,
                    .hours_on = spec.hardware.stem().string()};
    for (const Line& line : group.lines) {
      const double hours = spec.hardware.empty() ? 1 : hours_of_epoch(line);
      Curve curve{.name = line.name,
                  .points = points_of(line, spec.metric.name, percent ? 100 : 1, hours)};
      if (numbers && spec.hardware.empty())
        curve.published = published_points(line, *spec.published, *numbers);
      if (!curve.points.empty()) picture.curves.push_back(std::move(curve));
    }
    if (!picture.curves.empty()) pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace pipewright
