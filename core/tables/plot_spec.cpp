// SPDX-License-Identifier: Apache-2.0
#include "core/tables/plot_spec.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/read_section.h"
#include "core/tables/run_keys.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

constexpr const char* kStage = "stage";
constexpr const char* kTokens = "tokens";

bool has_stage(const std::vector<TableKey>& keys) {
  return std::ranges::find(keys, kStage, &TableKey::name) != keys.end();
}

TableKey read_key(Options& options, const char* name, const char* fallback, const char* help) {
  TableKey key{options.text(name, fallback, help), {}};
  key.place = options.where(name);
  return key;
}

PlotPublished read_plot_published(Options& section) {
  PlotPublished published;
  published.numbers = read_published_match(section);
  published.epoch = read_key(section, "epoch", "epoch", "The CSV column of the epoch.");
  published.first_epoch = static_cast<int>(section.integer(
      "first_epoch", 1, "The number of the first epoch in the file, 0 or 1.", {0, 1}));
  return published;
}

PlotOver read_over(Options& section) {
  PlotOver over;
  over.file = section.path("file", "", "A CSV file with a header, a point of the curve per row.");
  if (over.file.empty())
    section.problem("file", "is missing; expected the path of a CSV file with the curve");
  over.x = read_key(section, "x", "x", "The CSV column of x, in the units of the x-axis.");
  over.y = read_key(section, "y", "y", "The CSV column of y, in the units of the y-axis.");
  over.label = section.text("label", "", "What the legend calls the curve; default: the column.");
  const Value match =
      section.any("match", Value::mapping(),
                  "Which rows belong to a picture: {CSV column: a dotted key, or =text}; default: "
                  "all, in every picture.");
  if (!match.is(Value::Kind::Mapping))
    section.problem("match", concat("expected a mapping such as {scheme: scheme.name}, not ",
                                    match.described()));
  for (const auto& [column, key] : match.fields)
    over.match.emplace_back(column, TableKey{key.text, key.place});
  return over;
}

/// Reads `log`: the axes that are logarithmic.
void read_log(Options& options, PlotSpec& spec) {
  const Value given =
      options.any("log", Value::sequence(),
                  "Logarithmic axes: x, y, or color (of a map); one of them or a list: [x, y].");
  const bool list = given.is(Value::Kind::Sequence);
  for (const Value& axis : list ? given.items : std::vector<Value>{given}) {
    bool* log = axis.text == "x" ? &spec.log_x : axis.text == "y" ? &spec.log_y : nullptr;
    if (axis.text == "color" && spec.kind == PlotKind::Map) log = &spec.log_color;
    if (log != nullptr)
      *log = true;
    else
      options.problem("log", concat("is ", axis.shown(), "; expected x, y or a list of them",
                                    spec.kind == PlotKind::Map ? ", also color" : ""));
  }
}

/// Records a problem for options of the other kind of picture, which would have no effect.
void refuse_others(Options& options, const std::vector<const char*>& names, const char* why) {
  for (const char* name : names)
    if (options.given(name)) options.problem(name, why);
}

void check_map(Options& options, const PlotSpec& spec) {
  refuse_others(options, {"lines", "metric", "published", "interval"},
                "has no effect on a map; leave it out, or take kind: lines");
  for (const auto& [name, key] : {std::pair{"x", &spec.x}, std::pair{"y", &spec.y}}) {
    if (!options.given(name))
      options.problem(name, "is missing; a map needs two keys that the sweep varies as x and y");
    else if (key->name == "epoch" || key->name == "minibatch" || key->name == kStage)
      options.problem(name, concat("is '", key->name,
                                   "'; a map needs keys that the sweep varies, such as "
                                   "optimizer.lr"));
  }
}

void check_lines(Options& options, const PlotSpec& spec) {
  refuse_others(options, {"color"}, "has no effect on lines; leave it out, or take kind: map");
  const bool probe = is_probe_metric(spec.metric.name);
  const bool evaluated = spec.metric.name.starts_with("test_");
  if ((spec.x.name == "minibatch" && !probe && !evaluated) || (spec.x.name == kStage && !probe))
    options.problem("x", concat("is ", spec.x.name, ", which only values of probes have",
                                spec.x.name == kStage ? "" : ", and evaluations (train.evaluate)",
                                "; expected a y such as probe.weight_gap.forward_relative"));
  if (spec.x.name == kTokens && !evaluated)
    options.problem("x",
                    "is tokens, which only evaluations have (train.evaluate); expected a y "
                    "such as test_loss");
  if (has_stage(spec.lines) && !probe)
    options.problem("lines",
                    "has 'stage', which only values of probes have; expected a y such as "
                    "probe.weight_gap.forward_relative");
  if (spec.x.name == kStage && has_stage(spec.lines))
    options.problem("lines", "has 'stage', which is x already");
  if (spec.x.name != "epoch")
    refuse_others(options, {"published"}, "needs x: epoch, because published curves have epochs");
}

/// Reads x, y and color, or in their place the older `metric`.
void read_axes(Options& options, PlotSpec& spec) {
  const bool map = spec.kind == PlotKind::Map;
  spec.x = read_key(options, "x", "epoch",
                    "epoch; or a dotted key whose values stand on the axis, such as "
                    "pipeline.stages; or, where y is a probe, minibatch or stage; or minibatch or "
                    "tokens, over which y is what train.evaluate has found. Where neither x "
                    "nor lines are given and the sweep varies stages, they are x; where no x is "
                    "given and runs of one epoch were evaluated within it, minibatch is.");
  spec.x_is_free = !options.given("x");
  spec.x_title =
      options.text("x_title", "", "What stands below the axis where x is a key; default: the key.");
  const TableKey y = read_key(
      options, "y", kAccuracy,
      "A column of epochs.csv, probe.<probe>.<quantity>, or, over a key, steps_to, tokens_to "
      "or modelled_time_to with `loss`; of a map, a dotted key.");
  const TableKey metric = read_key(options, "metric", "", "The older name of y.");
  const TableKey color = read_key(options, "color", "",
                                  "The colours of a map: a column of epochs.csv or "
                                  "probe.<probe>.<quantity>; default: test_accuracy.");
  const bool older = !map && options.given("metric") && !options.given("y");
  spec.metric = older ? metric : map ? color : y;
  spec.metric_option = older ? "plot.metric" : map ? "plot.color" : "plot.y";
  if (map) spec.y = y;
  if (spec.metric.name.empty()) spec.metric.name = kAccuracy;
}

PlotSpec read_plot(Options& options) {
  PlotSpec spec;
  const bool map = options.choice("kind", {"lines", "map"}, "lines",
                                  "lines over x; or map, cells over x and y in the colours of a "
                                  "metric, where runs that diverged have a mark.") == "map";
  spec.kind = map ? PlotKind::Map : PlotKind::Lines;
  spec.pictures = read_keys(options, "pictures",
                            "label or dotted keys; each of their values is a picture of its own; "
                            "default: what the sweep varies beside lines, x and train.seed, or, "
                            "where lines are given, one picture.");
  spec.lines = read_keys(options, "lines",
                         "label or dotted keys; each of their values is a line, the mean over what "
                         "else varies (seeds); stage has a line per stage of a probe's values; "
                         "default: label, or without labels the scheme or what else the sweep "
                         "varies first.");
  read_axes(options, spec);
  spec.loss = read_loss_to_reach(options, {});
  spec.epoch = options.choice("epoch", {"last", "best"}, "last",
                              "Where a run is one point: the last epoch that was evaluated, or "
                              "the best of each run.");
  spec.interval = options.choice("interval", {"deviation", "confidence"}, "deviation",
                                 "Bands and error bars: the sample standard deviation over runs, "
                                 "or the 95 % confidence interval of their mean.") == "confidence"
                      ? PlotInterval::Confidence
                      : PlotInterval::Deviation;
  read_log(options, spec);
  spec.hardware = options.path("hardware", "",
                               "A description of hardware: every run is simulated on it, and "
                               "curves are drawn against the hours it would take there instead of "
                               "epochs or, of evaluations, mini-batches and tokens.");
  spec.published = read_part(options, "published", "Curves of others, drawn dashed beside ours.",
                             read_plot_published);
  spec.over = read_part(options, "over",
                        "A curve drawn over every picture, such as a predicted edge.", read_over);
  map ? check_map(options, spec) : check_lines(options, spec);
  return spec;
}

}  // namespace

bool PlotSpec::over_key() const {
  return kind == PlotKind::Map ||
         (x.name != "epoch" && x.name != "minibatch" && x.name != kTokens && x.name != kStage);
}

bool PlotSpec::over_evaluations() const {
  return x.name == kTokens || (x.name == "minibatch" && !is_probe_metric(metric.name));
}

bool PlotSpec::in_hours() const {
  return !hardware.empty() && (x.name == "epoch" || over_evaluations());
}

bool PlotSpec::line_per_stage() const {
  return has_stage(lines);
}

PlotSpec read_plot_spec(const Value& document) {
  PlotSpec spec = read_section(document, "plot", read_plot);
  if (spec.metric.name == kAccuracy && document.find_path(spec.metric_option) == nullptr)
    spec.metric.name = default_metric(document);
  spec.labelled = gives_labels(document);
  if (const Value* const loss = document.find_path("table.loss"); spec.loss == 0 && loss != nullptr)
    spec.loss = loss->is(Value::Kind::Integer) ? static_cast<double>(loss->integer) : loss->number;
  if (is_time_to(spec.metric.name) && spec.loss == 0)
    throw Error(ErrorKind::Experiment,
                concat(std::string_view(spec.metric_option), ": ", spec.metric.name,
                       " asks for a test loss; expected plot.loss or table.loss"));
  if (is_time_to(spec.metric.name) && spec.kind == PlotKind::Map)
    throw Error(
        ErrorKind::Experiment,
        concat(std::string_view(spec.metric_option), ": ", spec.metric.name,
               " cannot be shown on a map, which has no mark for runs that do not reach the "
               "loss; expected lines over a key"));
  if (is_time_to(spec.metric.name) && !spec.over_key())
    throw Error(ErrorKind::Experiment,
                concat(std::string_view(spec.metric_option), ": ", spec.metric.name,
                       " is one number of a run; expected a plot.x such as pipeline.stages"));
  return spec;
}

void check_plot_keys(const PlotSpec& spec, const std::vector<RunRecord>& runs, Problems& problems) {
  for (const TableKey& key : spec.pictures) check_key(key, "plot.pictures", runs, problems);
  for (const TableKey& key : spec.lines)
    if (key.name != kStage) check_key(key, "plot.lines", runs, problems, {kStage});
  if (spec.over_key())
    check_key(spec.x, "plot.x", runs, problems, {"epoch", "minibatch", kTokens, kStage});
  if (spec.kind == PlotKind::Map) check_key(spec.y, "plot.y", runs, problems);
  if (spec.published)
    for (const auto& [column, key] : spec.published->numbers.match)
      check_key(key, "plot.published.match", runs, problems);
  if (spec.over)
    for (const auto& [column, key] : spec.over->match)
      check_key(key, "plot.over.match", runs, problems);
}

std::vector<OptionInfo> plot_options() {
  return options_read_by(read_plot, "plot",
                         "{published: {file: x.csv, match: {scheme: label}}, over: {file: x.csv}}");
}

}  // namespace pipewright
