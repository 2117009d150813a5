// SPDX-License-Identifier: Apache-2.0
#include "core/tables/table_spec.h"

#include <algorithm>

#include "core/records/run_record.h"
#include "core/tables/read_section.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

void read_differs(Options& section, TablePublished& published) {
  const Value given = section.any("differs", Value::mapping(),
                                  "What is known to differ from the published recipe, as a mapping "
                                  "of labels (or all) to texts; cells are marked, texts follow the "
                                  "table.");
  if (!given.is(Value::Kind::Mapping))
    section.problem("differs", concat("expected a mapping such as {all: one seed only}, not ",
                                      given.described()));
  for (const auto& [label, text] : given.fields) {
    if (text.is(Value::Kind::Text))
      published.differs.emplace_back(label, text.text);
    else
      section.problem("differs", concat("'", label, "' needs a text, not ", text.described()));
  }
}

TablePublished read_table_published(Options& section) {
  TablePublished published = read_published_match(section);
  const std::string std = section.text(
      "std", "", "The CSV column of the number's standard deviation, if there is one.");
  if (!std.empty()) published.std = {std, section.where("std")};
  published.metric = section.text("metric", "",
                                  "The metric that the numbers are of: a table of another one "
                                  "leaves them out. Default: table.metric.");
  published.error =
      section.flag("error", false, "The numbers are errors in percent; 100 minus them is shown.");
  read_differs(section, published);
  return published;
}

TableSpec read_table(Options& options) {
  TableSpec spec;
  spec.rows = read_keys(options, "rows",
                        "label or dotted keys whose values name the rows; default: what the sweep "
                        "varies, except train.seed, the schemes or labels innermost.");
  spec.columns = read_keys(options, "columns",
                           "label or dotted keys whose values name the columns; default: "
                           "pipeline.stages where a row has several, or workers where replicas "
                           "vary, too; with rows, one column, the metric.");
  spec.metric.name =
      options.text("metric", kAccuracy,
                   "What cells show (default with the losses mse and l1: test_loss): a column of "
                   "epochs.csv; probe.<probe>.<quantity>, the mean "
                   "of what a probe measured in the epoch over stages, or of one stage with [2] "
                   "behind it; what crosses edges, as "
                   "sent_ratio, sent_mib, required_mib_per_s or codec_share, or what "
                   "replicas sum, as reduced_ratio or reduced_mib (both from "
                   "traffic.csv); or a metric modelled_…, which needs `hardware`; or steps_to, "
                   "tokens_to or modelled_time_to (in seconds), what a training takes to come to "
                   "the test loss `loss`.");
  spec.metric.place = options.where("metric");
  spec.beside = read_keys(options, "beside",
                          "Further metrics, each in a column behind the others, such as "
                          "[sent_ratio, required_mib_per_s].");
  std::vector<std::string> metrics{spec.metric.name};
  for (const TableKey& metric : spec.beside) metrics.push_back(metric.name);
  spec.loss = read_loss_to_reach(options, metrics);
  spec.epoch = options.choice("epoch", {"last", "best"}, "last",
                              "The last epoch that was evaluated, or the best of each run. What is "
                              "neither better nor worse if it is larger, as lr and what probes "
                              "measure, has no best; its last is taken.");
  const std::string best_over = options.text(
      "best_over", "",
      "A dotted key such as optimizer.lr: every cell shows the runs of one of its values only, the "
      "one with the best mean on held-out training samples (loader.validation), by the metric if "
      "that is measured on samples, as test_loss and steps_to are, otherwise by accuracy or loss. "
      "A sweep of loader.validation: "
      "[200, 0] chooses on 200 held-out samples and shows test results.");
  if (!best_over.empty()) spec.best_over = {best_over, options.where("best_over")};
  const auto optional_number = [&](const char* name, const char* help) {
    const double value = options.number(name, 0, help, kNotNegative);
    return options.given(name) ? std::optional(value) : std::nullopt;
  };
  spec.failed_as = optional_number(
      "failed_as",
      "The metric that a run counts with that failed or diverged, such as the accuracy of chance, "
      "0.1. Without it such a run is counted and has no number.");
  spec.floor = optional_number(
      "floor",
      "The metric from which on a run has learned, in its own unit: each cell says how many of its "
      "runs have. A run that failed or diverged has not.");
  spec.hardware = options.path(
      "hardware", "",
      "A description of hardware. Every run is simulated on it, which gives the metrics "
      "modelled_samples_per_second, modelled_speedup (over the first run), modelled_bubble, "
      "modelled_required_mib_per_s and modelled_link_mib_per_s (what links must carry and can), "
      "modelled_state_gib, modelled_activation_gib, modelled_memory_gib, "
      "modelled_worker_state_gib, modelled_worker_memory_gib, modelled_parameters and, of trained "
      "runs, modelled_hours. A table of any other metric is followed by one of that metric "
      "against modelled time.");
  spec.published = read_part(options, "published", "Numbers of others, shown beside ours.",
                             read_table_published);
  return spec;
}

}  // namespace

double read_loss_to_reach(Options& options, const std::vector<std::string>& metrics,
                          std::optional<double> otherwise) {
  const double loss = options.number(
      "loss", otherwise.value_or(0),
      "The test loss that steps_to, tokens_to and modelled_time_to ask for. Runs need "
      "train.evaluate; between two evaluations the loss is taken to fall on a line. A run that "
      "never gets there is counted and enters no mean.",
      kNotNegative);
  const auto asks = std::ranges::find_if(metrics, is_time_to);
  if (asks != metrics.end() && loss == 0)
    options.problem("loss",
                    concat(options.given("loss") ? "is 0" : "is missing",
                           "; expected the test loss that ", *asks, " asks for, such as 2.0"));
  return loss;
}

std::vector<TableKey> read_keys(Options& options, const std::string& name, const char* help) {
  const Value given = options.any(name, Value::sequence(), help);
  const bool list = given.is(Value::Kind::Sequence);
  std::vector<TableKey> keys;
  for (const Value& key : list ? given.items : std::vector<Value>{given}) {
    if (key.is(Value::Kind::Text) && !key.text.empty())
      keys.push_back({key.text, key.place});
    else
      options.problem(name, concat("expected label, a dotted key such as model.name, or a list of "
                                   "them, not ",
                                   key.described()));
  }
  return keys;
}

TablePublished read_published_match(Options& section) {
  TablePublished published;
  published.file = section.path("file", "", "A CSV file with a header and one number per row.");
  published.place = section.where("file");
  const Value match =
      section.any("match", Value::mapping(),
                  "Which row belongs to a cell: {CSV column: label, a dotted key, or =text}.");
  published.value.name = section.text("value", "value", "The CSV column of the number.");
  published.value.place = section.where("value");
  if (published.file.empty())
    section.problem("file", "is missing; expected the path of a CSV file");
  if (!match.is(Value::Kind::Mapping)) {
    section.problem("match",
                    concat("expected a mapping such as {scheme: label}, not ", match.described()));
    return published;
  }
  if (match.fields.empty())
    section.problem("match", "is missing; expected a mapping such as {scheme: label}");
  for (const auto& [column, key] : match.fields) {
    if (key.is(Value::Kind::Text))
      published.match.emplace_back(column, TableKey{key.text, key.place});
    else
      section.problem("match",
                      concat("'", column, "' needs label or a dotted key, not ", key.described()));
  }
  return published;
}

const TableKey* metric_without_hardware(const TableSpec& spec) {
  if (!spec.hardware.empty()) return nullptr;
  if (is_modelled(spec.metric.name)) return &spec.metric;
  const auto found = std::ranges::find_if(
      spec.beside, [](const TableKey& metric) { return is_modelled(metric.name); });
  return found == spec.beside.end() ? nullptr : &*found;
}

std::string default_metric(const Value& document) {
  const Value* const loss = document.find_path("loss.name");
  const bool real = loss != nullptr && (loss->text == "mse" || loss->text == "l1");
  return real ? "test_loss" : kAccuracy;
}

bool gives_labels(const Value& document) {
  for (const char* part : {"sweep.zip", "sweep.grid"}) {
    const Value* lists = document.find_path(part);
    if (lists != nullptr && lists->find("label") != nullptr) return true;
  }
  const Value* points = document.find_path("sweep.points");
  return points != nullptr && std::ranges::any_of(points->items, [](const Value& point) {
           return point.find("label") != nullptr;
         });
}

TableSpec read_table_spec(const Value& document) {
  TableSpec spec = read_section(document, "table", read_table);
  if (document.find_path("table.metric") == nullptr) spec.metric.name = default_metric(document);
  if (spec.published && spec.published->metric.empty()) spec.published->metric = spec.metric.name;
  spec.labelled = gives_labels(document);
  const bool of_samples = spec.metric.name.starts_with("test_") || is_time_to(spec.metric.name);
  spec.chosen_by = of_samples ? spec.metric.name : default_metric(document);
  return spec;
}

std::vector<OptionInfo> table_options() {
  return options_read_by(read_table, "table", "published: {file: x.csv, match: {scheme: label}}");
}

TableSpec TableSpec::with_metric(const TableKey& other) const {
  TableSpec spec = *this;
  spec.metric = other;
  spec.keep_meaning_of(*this);
  return spec;
}

void TableSpec::keep_meaning_of(const TableSpec& written) {
  if (metric.name == written.metric.name) return;
  failed_as = floor = std::nullopt;
  if (published && written.published) published->metric = written.published->metric;
}

const TablePublished* TableSpec::published_of_metric() const {
  return published && published->metric == metric.name ? &*published : nullptr;
}

}  // namespace pipewright
