// SPDX-License-Identifier: Apache-2.0
#include "core/tables/curves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/statistics/tests.h"
#include "core/tables/default_layout.h"
#include "core/tables/mean_difference.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/published.h"
#include "core/tables/run_keys.h"
#include "core/tables/table.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

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

/// A line of a picture while its runs are collected: values by x, and diverged runs by x.
struct Collected {
  std::string name;
  std::map<double, std::vector<double>> values;
  std::map<double, int> diverged;
  std::set<const RunRecord*> runs;  ///< that are in one of these
  std::map<std::string, int> unfinished;
};

/// Half the interval around the mean.
double reach_of(const Moments& moments, PlotInterval interval) {
  if (moments.count < 2) return 0;
  if (interval == PlotInterval::Deviation) return moments.std();
  return student_t(0.95, moments.count - 1) * moments.std() / std::sqrt(moments.count);
}

/// Whether a run's numbers are its results.
bool has_ended(const RunRecord& run, const PlotSpec& spec) {
  return run.done() || run.diverged() || is_modelled(spec.metric.name);
}

/// Leaves the x that all of the line's runs have, where all are unfinished and have come unequally
/// far.
void keep_common(Collected& line) {
  if (line.runs.empty()) return;
  std::erase_if(line.values, [&](const auto& at) { return at.second.size() < line.runs.size(); });
  line.runs.clear();
}

/// The samples of a line's runs; one line, or one for each stage.
std::vector<Collected> collected(const Line& line, const PlotSpec& spec, const Axis& axis,
                                 double scale) {
  std::vector<Collected> all;
  std::map<std::string, int> unfinished;
  const auto ended = [&](const RunRecord* run) { return has_ended(*run, spec); };
  const bool some_ended = std::ranges::any_of(line.runs, ended);
  for (const RunRecord* run : line.runs) {
    if (!ended(run)) ++unfinished[run->state];
    if (!ended(run) && some_ended) continue;
    double last = spec.x.name == "epoch" ? 1 : 0;
    bool infinite = false;
    for (const Sample& sample : samples_of(*run, spec, axis)) {
      last = sample.x;
      std::vector<std::string> parts;
      for (const std::string& part : {line.name, sample.stage})
        if (!part.empty()) parts.push_back(part);
      Collected& here = named(all, &Collected::name, join(parts, ", "));
      here.runs.insert(run);
      if (std::isinf(sample.value)) {  // such as a time to a loss that is not reached
        if (!std::exchange(infinite, true)) ++here.diverged[sample.x];
        continue;
      }
      here.values[sample.x].push_back(scale * sample.value);
    }
    if (!run->diverged() || infinite || spec.line_per_stage() || spec.x.name == "stage") continue;
    Collected& here = named(all, &Collected::name, line.name);
    ++here.diverged[spec.over_key() ? axis.position(key_text(*run, spec.x.name)) : last];
    here.runs.insert(run);
  }
  for (Collected& each : all) {
    // Those that got there must not pass for all of them.
    if (is_time_to(spec.metric.name))
      for (const auto& [x, runs] : each.diverged) each.values.erase(x);
    if (!some_ended) keep_common(each);
    each.unfinished = unfinished;
  }
  return all;
}

/// Modelled hours of a whole epoch and of all: the last may be cut short.
struct Hours {
  double epoch = 1, all = std::numeric_limits<double>::infinity();  // of an x-axis without hours

  double after(double epochs) const { return std::min(epochs * epoch, all); }
};

Curve curve_of(const Collected& line, PlotInterval interval, const Hours& hours) {
  Curve curve{.name = line.name};
  curve.runs = static_cast<int>(line.runs.size());
  curve.unfinished = line.unfinished;
  for (const auto& [x, values] : line.values) {
    const Moments moments = moments_of(values);
    curve.points.push_back({.x = hours.after(x),
                            .mean = moments.mean,
                            .reach = reach_of(moments, interval),
                            .runs = static_cast<int>(values.size())});
  }
  for (const auto& [x, runs] : line.diverged) curve.diverged.push_back({hours.after(x), runs});
  return curve;
}

/// The mean over the line's runs, which usually differ only in their seeds, and the most hours that
/// one of them has.
Hours hours_of(const Line& line) {
  double sum = 0, runs = 0;
  Hours hours{.all = 0};
  for (const RunRecord* run : line.runs)
    if (run->modelled_epoch_hours > 0) {
      sum += run->modelled_epoch_hours;
      hours.all = std::max(hours.all, run->modelled_run_hours);
      ++runs;
    }
  hours.epoch = sum / std::max(1., runs);
  return hours;
}

/// The rows of the file that match the line's first run, without those that are not numbers.
std::vector<LinePoint> published_points(const Line& line, const PlotPublished& wanted,
                                        const PublishedNumbers& numbers) {
  std::vector<LinePoint> points;
  for (const std::size_t row :
       numbers.matching(texts_of(wanted.numbers.match, *line.runs.front()))) {
    const auto epoch = parsed<double>(numbers.rows[row][numbers.index_of(wanted.epoch.name)]);
    const auto value =
        parsed<double>(numbers.rows[row][numbers.index_of(wanted.numbers.value.name)]);
    if (epoch && value)
      points.push_back({.x = *epoch - wanted.first_epoch + 1, .mean = *value, .runs = 1});
  }
  std::ranges::sort(points, {}, &LinePoint::x);
  return points;
}

/// The axis of x. Records problems with a key's values.
Axis axis_of(const PlotSpec& spec, const std::vector<RunRecord>& runs, Problems& problems) {
  if (spec.over_key()) {
    Axis axis = key_axis(spec.x, "plot.x", spec.log_x, runs, problems);
    if (!spec.x_title.empty()) axis.label = spec.x_title;
    return axis;
  }
  Axis axis{.label = spec.x.name, .log = spec.log_x};
  if (spec.in_hours()) axis.label = concat("modelled hours on ", spec.hardware.stem().string());
  if (spec.log_x && spec.x.name != "epoch" && !spec.over_evaluations())
    problems.add(spec.x.place, concat("plot.x: ", spec.x.name,
                                      " counts from 0, which has no place on a logarithmic axis; "
                                      "leave x out of plot.log"));
  return axis;
}

std::optional<PublishedNumbers> published_of(const PlotSpec& spec, Problems& problems) {
  if (!spec.published) return std::nullopt;
  const TablePublished& wanted = spec.published->numbers;
  PublishedNumbers numbers = read_published(wanted.file);
  if (!numbers.has({wanted.value, spec.published->epoch}, wanted.match, "plot.published", problems))
    return std::nullopt;
  return numbers;
}

/// Records a problem for a value that a logarithmic y-axis does not have.
void check_log_y(const Picture& picture, const PlotSpec& spec, Problems& problems) {
  if (!picture.log_y) return;
  for (const Curve& curve : picture.curves)
    for (const LinePoint& point : curve.points)
      if (point.mean <= 0)
        return problems.add(spec.metric.place,
                            concat(std::string_view(spec.metric_option), ": ", curve.name, " has ",
                                   picture.metric, " ", point.mean,
                                   ", which has no place on a logarithmic axis; leave y out of "
                                   "plot.log"));
}

/// The lines of a picture as curves.
void add_curves(Picture& picture, const Lines& group, const PlotSpec& spec,
                const std::optional<PublishedNumbers>& numbers) {
  for (const Line& line : group.lines) {
    const Hours hours = spec.in_hours() && !spec.over_evaluations() ? hours_of(line) : Hours();
    for (const Collected& each : collected(line, spec, picture.x, picture.percent ? 100 : 1)) {
      Curve curve = curve_of(each, spec.interval, hours);
      if (numbers && !spec.in_hours())
        curve.published = published_points(line, *spec.published, *numbers);
      curve.keyed = picture.x.keyed;
      curve.series = curve.name;
      if (is_time_to(spec.metric.name)) curve.lost = "did not reach the loss";
      picture.curves.push_back(std::move(curve));
    }
  }
}

/// Whether one curve would hide the other.
bool equal(const Curve& a, const Curve& b) {
  return !a.points.empty() && a.unfinished == b.unfinished && a.points == b.points &&
         a.published == b.published && a.diverged == b.diverged;
}

/// Makes one curve of those that are equal everywhere.
void join_equal(std::vector<Curve>& curves) {
  std::vector<Curve> joined;
  for (Curve& curve : curves) {
    const auto first =
        std::ranges::find_if(joined, [&](const Curve& other) { return equal(other, curve); });
    if (first == joined.end())
      joined.push_back(std::move(curve));
    else
      first->name += " = " + curve.name;
  }
  curves = std::move(joined);
}

/// Gives each series its colour, the same in all pictures. Curves that became one have one, so that
/// few colours are used up.
void color(std::vector<Picture>& pictures) {
  std::map<std::string, std::size_t> colors;
  for (Picture& picture : pictures)
    for (Curve& curve : picture.curves)
      curve.color = colors.try_emplace(curve.series, colors.size()).first->second;
}

/// The keys of lines, without the stages of probes' values.
std::vector<TableKey> run_keys_of(const PlotSpec& spec) {
  std::vector<TableKey> keys = spec.lines;
  std::erase_if(keys, [](const TableKey& key) { return key.name == "stage"; });
  return keys;
}

}  // namespace

std::string Curve::runs_text() const {
  int fewest = runs, most = 0, gone = 0;
  for (const LinePoint& point : points) {
    fewest = std::min(fewest, point.runs);
    most = std::max(most, point.runs);
  }
  for (const Diverged& each : diverged) gone += each.runs;
  const int all = std::max(runs, most);
  std::vector<std::string> parts;
  if (keyed && most > 1)
    parts.push_back(concat(fewest < most ? "up to " : "", most, " runs per point"));
  if (!keyed && all > 1) parts.push_back(concat(all, " runs"));
  if (gone > 0) parts.push_back(concat(gone, keyed ? concat(" of ", all) : "", " ", lost));
  std::vector<std::string> states;
  for (const auto& [state, count] : unfinished) states.push_back(concat(count, " ", state));
  const std::string counts = join(parts, ", ");
  if (states.empty()) return counts;
  if (runs == 0) return concat("unfinished: ", join(states, ", "));
  return concat(counts, counts.empty() ? "" : "; ", "left out: ", join(states, ", "));
}

bool Curve::is_hole(double from, double to) const {
  return std::ranges::any_of(diverged,
                             [&](const Diverged& each) { return from < each.x && each.x < to; });
}

std::string mixing_note(const PlotSpec& given, const std::vector<RunRecord>& runs) {
  const PlotSpec spec = laid_out(given, runs);
  TableSpec cells;  // each point of a picture, or curve of it, as the row of a table
  cells.rows = run_keys_of(spec);
  if (spec.kind == PlotKind::Map) cells.rows = {spec.y};
  cells.rows.insert(cells.rows.end(), spec.pictures.begin(), spec.pictures.end());
  if (spec.over_key()) cells.rows.push_back(spec.x);
  cells.metric = spec.metric;
  cells.epoch = spec.epoch;
  if (cells.rows.empty()) cells.rows.push_back({"=all", {}});
  const std::vector<std::string> mixed = make_table(cells, runs).mixed;
  if (mixed.empty()) return {};
  return concat("Means mix ", join(mixed, ", "),
                ": ± is over all their runs, not over seeds alone; plot.lines or plot.pictures can "
                "tell them apart.");
}

std::string title_of(const RunRecord& run, const std::vector<TableKey>& keys) {
  std::vector<std::string> parts;
  for (const TableKey& key : keys)
    if (std::string part = key_title(run, key.name); part != kNoValue || keys.size() == 1)
      parts.push_back(std::move(part));
  return join(parts, ", ");
}

OverCurve over_curve(const PlotOver& over, const RunRecord& run, Problems& problems) {
  const PublishedNumbers numbers = read_published(over.file);
  OverCurve curve{.name = over.label.empty() ? over.y.name : over.label};
  if (!numbers.has({over.x, over.y}, over.match, "plot.over", problems)) return curve;
  const auto number = [&](std::size_t row, const TableKey& column) {
    const std::string& text = numbers.rows[row][numbers.index_of(column.name)];
    const std::optional<double> value = parsed<double>(text);
    if (value && std::isfinite(*value)) return *value;
    throw Error(ErrorKind::Data,
                concat(column.name, " is ", Value::of(text).shown(),
                       ", which is no number that a curve can have"),
                concat(over.file.string(), ":", numbers.lines[row]));
  };
  for (const std::size_t row : numbers.matching(texts_of(over.match, run)))
    curve.points.emplace_back(number(row, over.x), number(row, over.y));
  return curve;
}

std::vector<Picture> make_pictures(const PlotSpec& given, const std::vector<RunRecord>& records) {
  const PlotSpec spec = laid_out(given, records);
  const std::vector<RunRecord> derived = derived_added(records, {spec.metric.name}, spec.loss);
  const std::vector<RunRecord>& runs = derived.empty() ? records : derived;
  Problems problems;
  check_plot_keys(given, runs, problems);
  check_metric(spec.metric, spec.metric_option, runs, problems);
  if (spec.over_evaluations()) check_evaluated(spec.x, "plot.x", runs, problems);
  const std::optional<PublishedNumbers> numbers = published_of(spec, problems);
  const Axis axis = axis_of(spec, runs, problems);
  problems.throw_if_any();

  const std::vector<TableKey> line_keys = run_keys_of(spec);
  std::vector<TableKey> order = spec.pictures;
  order.insert(order.end(), line_keys.begin(), line_keys.end());
  std::vector<Lines> groups;
  for (const std::size_t i : slowest_first(order, runs)) {
    Lines& group = named(groups, &Lines::title, title_of(runs[i], spec.pictures));
    named(group.lines, &Line::name, title_of(runs[i], line_keys)).runs.push_back(&runs[i]);
  }
  std::vector<Picture> pictures;
  for (const Lines& group : groups) {
    Picture picture{.title = group.title,
                    .metric = spec.metric.name,
                    .percent = is_share(spec.metric.name),
                    .hours_on = spec.in_hours() ? spec.hardware.stem().string() : "",
                    .x = axis,
                    .log_y = spec.log_y,
                    .interval = spec.interval};
    add_curves(picture, group, spec, numbers);
    const auto is_empty = [](const Curve& curve) { return curve.points.empty(); };
    if (picture.curves.empty() ||
        (!spec.over_key() && std::ranges::all_of(picture.curves, is_empty)))
      continue;
    check_log_y(picture, spec, problems);
    if (spec.over)
      picture.over = over_curve(*spec.over, *group.lines.front().runs.front(), problems);
    pictures.push_back(std::move(picture));
  }
  problems.throw_if_any();
  for (Picture& picture : pictures) join_equal(picture.curves);
  color(pictures);
  return pictures;
}

}  // namespace pipewright
