// SPDX-License-Identifier: Apache-2.0
#include "core/tables/run_keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/parsed.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/config/options.h"
#include "core/schedule/schedule.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/time_to.h"

namespace pipewright {
namespace {

void add_texts(const Value& value, const std::string& key,
               std::map<std::string, std::string>& texts) {
  if (value.is(Value::Kind::Mapping)) {
    for (const auto& [name, field] : value.fields)
      add_texts(field, key.empty() ? name : concat(key, ".", name), texts);
    return;
  }
  texts[key] = value.is(Value::Kind::Sequence) ? to_json(value) : value_text(value);
}

/// The shape of a run's pipeline as its scheme places the stages; as if it did not decide, if it
/// can no longer be made from the configuration.
PipelineShape placed_by_scheme(const Value& config, std::int64_t stages, std::int64_t replicas) {
  PipelineShape shape{.stages = static_cast<int>(stages), .replicas = static_cast<int>(replicas)};
  const Value* scheme = config.find("scheme");
  const Value* name = scheme == nullptr ? nullptr : scheme->find("name");
  const auto* entry = name == nullptr ? nullptr : Registry<Scheme>::instance().find(name->text);
  if (entry == nullptr) return shape;
  Problems problems;
  Options options(scheme, "scheme", problems);
  try {
    const auto made = entry->make(options);
    shape.placement = made->placement(shape.stages);
    shape.replica_placement = made->replica_placement(shape.stages, shape.replicas);
  } catch (const Error&) {  // its file may be gone
  }
  return shape;
}

/// Number of workers of all replicas, by which runs with stages and with replicas can be compared.
std::optional<Value> workers_of(const RunRecord& run) {
  if (!run.config.known()) return std::nullopt;
  const Value& config = run.config.of_any_seed();
  const Value* stages = config.find_path("pipeline.stages");
  const Value* replicas = config.find_path("pipeline.replicas");
  const Value* placement = config.find_path("pipeline.placement");
  if (stages == nullptr || replicas == nullptr || placement == nullptr) return std::nullopt;
  if (placement->items.empty())
    return Value::of(placed_by_scheme(config, stages->integer, replicas->integer).workers());
  std::int64_t workers = 0;
  for (const Value& worker : placement->items) workers = std::max(workers, worker.integer + 1);
  return Value::of(workers * replicas->integer);
}

/// The run's value of a key, or of the derived key `workers`; none if it has no such option.
std::optional<Value> value_of(const RunRecord& run, const std::string& key) {
  if (key == "workers") return workers_of(run);
  return run.setting(key);
}

void add_options_of(const Value& config, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [key, value] : config.fields) {
    if (value.fields.empty()) out.push_back(prefix + key);
    add_options_of(value, prefix + key + ".", out);
  }
}

/// The beginning of a message on what an option names; an option of the command line is its place.
std::string named_by(const TableKey& key, const char* what) {
  return key.place.file.starts_with("--") ? std::string() : concat(std::string_view(what), ": ");
}

/// Does what check_metric() does for a probe's metric, which is not judged before a run has
/// columns.
void check_probe_metric(const TableKey& metric, const char* what,
                        const std::vector<RunRecord>& runs, Problems& problems) {
  const auto add = [&](const std::string& message) {
    problems.add(metric.place, concat(named_by(metric, what), message));
  };
  if (!probe_metric(metric.name))
    return add(concat("'", metric.name,
                      "' is no metric of a probe; expected probe.<probe>.<quantity>, or that with "
                      "a stage behind it, as in probe.weight_gap.forward_relative[0]"));
  const std::string of_any_stage = metric.name.substr(0, metric.name.find('['));
  const auto has = [&](const RunRecord& run) {
    return std::ranges::count(run.columns, metric.name) > 0 ||
           std::ranges::count(run.columns, of_any_stage) > 0;
  };
  const auto trained = [](const RunRecord& run) { return !run.columns.empty(); };
  if (std::ranges::any_of(runs, has) || std::ranges::none_of(runs, trained)) return;
  std::vector<std::string> known = probe_metric_names(runs);
  for (const RunRecord& run : runs)
    for (const std::string& column : run.columns)
      if (is_probe_metric(column) && !column.ends_with(']') &&
          std::ranges::count(known, column) == 0)
        known.push_back(column);
  const std::string none = concat("no run has a metric '", metric.name, "'");
  if (known.empty())
    return add(concat(none,
                      "; no probe has measured anything in these runs (there is no "
                      "probes.csv): expected probes: [{name: …}] in the experiment"));
  const std::string near = did_you_mean(metric.name, known);
  add(concat(none, near, near.empty() ? "; measured are " : " Measured are ", join(known, ", ")));
}

/// What to write instead of a metric that no run has: the column of that metric, or first the
/// section `metrics`, if that only has to ask for it.
std::string metric_advice(const std::string& name, const std::vector<RunRecord>& runs,
                          const std::vector<std::string>& known) {
  const std::string metric = name.starts_with("test_") ? name.substr(5) : name;
  const std::string column = "test_" + metric;
  const auto unasked = [&](const RunRecord& run) {
    return std::ranges::count(run.unasked, column) > 0;
  };
  if (std::ranges::count(known, column) > 0) return concat("; did you mean '", column, "'?");
  if (std::ranges::none_of(runs, unasked)) return suggestion(name, known);
  return concat("; write metrics: [", metric, "] in the experiment",
                name == column ? "" : concat(", and ", column, " here"));
}

}  // namespace

std::string value_text(const Value& value) {
  return value.is(Value::Kind::Null) ? "" : plain_text(value);
}

std::map<std::string, std::string> option_texts(const Value& document) {
  std::map<std::string, std::string> texts;
  add_texts(document, "", texts);
  return texts;
}

std::string key_text(const RunRecord& run, const std::string& key) {
  if (key.starts_with('=')) return key.substr(1);
  if (key == "label") return run.label;
  const std::optional<Value> value = value_of(run, key);
  return value ? value_text(*value) : kNoValue;
}

std::string named_value(const std::string& key, const std::string& text) {
  const bool number = text.find_first_not_of("0123456789.-+e") == std::string::npos;
  return number ? concat(short_key(key), " ", text) : text;
}

std::string key_title(const RunRecord& run, const std::string& key) {
  const std::optional<Value> value = value_of(run, key);
  if (key == "label" || !value || value->is(Value::Kind::Text)) return key_text(run, key);
  return concat(short_key(key), " ", value_text(*value));
}

std::vector<std::size_t> slowest_first(const std::vector<TableKey>& keys,
                                       const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::size_t>> ranks(runs.size());
  for (const TableKey& key : keys) {
    std::map<std::string, std::size_t> rank;
    for (std::size_t i = 0; i < runs.size(); ++i)
      ranks[i].push_back(rank.try_emplace(key_text(runs[i], key.name), rank.size()).first->second);
  }
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) -> const auto& { return ranks[i]; });
  return order;
}

void check_key(const TableKey& key, const char* what, const std::vector<RunRecord>& runs,
               Problems& problems, std::vector<std::string> words) {
  const auto has = [&](const RunRecord& run) { return value_of(run, key.name).has_value(); };
  if (key.name == "label" || key.name.starts_with('=') || runs.empty() ||
      std::ranges::any_of(runs, has))
    return;
  std::vector<std::string> known = std::move(words);
  known.emplace_back("label");
  const std::string expected = join(known, ", ");
  std::set<const Value*> read;
  for (const RunRecord& run : runs)
    if (run.config.known() && read.insert(&run.config.of_any_seed()).second)
      add_options_of(run.config.of_any_seed(), "", known);
  const auto of_a_section = std::ranges::find_if(
      known, [&](const std::string& each) { return each.ends_with("." + key.name); });
  const std::string near = of_a_section != known.end() ? *of_a_section : nearest(key.name, known);
  problems.add(key.place,
               concat(what, ": no run has an option '", key.name, "'",
                      near.empty() ? concat("; expected ", expected,
                                            " or a key of experiment.yaml such as model.name")
                                   : concat("; did you mean '", near, "'?")));
}

void check_evaluated(const TableKey& metric, const char* what, const std::vector<RunRecord>& runs,
                     Problems& problems) {
  const auto never = [](const RunRecord& run) {
    const std::string every = key_text(run, "train.evaluate.every");
    return run.config.known() && (every == "0" || parsed<double>(every) == std::nullopt);
  };
  if (!runs.empty() && std::ranges::all_of(runs, never))
    problems.add(metric.place, concat(named_by(metric, what), metric.name,
                                      " is read from evaluations.csv, which no run has; expected "
                                      "train: {evaluate: {every: …, unit: minibatch}}"));
}

void check_metric(const TableKey& metric, const char* what, const std::vector<RunRecord>& runs,
                  Problems& problems) {
  if (is_probe_metric(metric.name)) return check_probe_metric(metric, what, runs, problems);
  if (is_time_to(metric.name)) return check_evaluated(metric, what, runs, problems);
  std::vector<std::string> known;
  for (const RunRecord& run : runs) {
    for (const std::string_view name : kTimesTo)
      if (!run.evaluations.empty() && std::ranges::count(known, name) == 0)
        known.emplace_back(name);
    for (const auto& [name, value] : run.modelled)
      if (std::ranges::count(known, name) == 0) known.push_back(name);
    for (const std::string& column : run.columns)
      if (column != "epoch" && std::ranges::count(known, column) == 0) known.push_back(column);
  }
  if (known.empty() || std::ranges::count(known, metric.name) > 0) return;
  const auto is_simulated = [](const RunRecord& run) { return !run.modelled.empty(); };
  if (is_modelled(metric.name) && std::ranges::none_of(runs, is_simulated)) return;
  problems.add(metric.place, concat(named_by(metric, what), "no run has a metric '", metric.name,
                                    "'", metric_advice(metric.name, runs, known)));
}

bool is_share(const std::string& metric) {
  if (metric == "modelled_bubble") return true;
  return metric.ends_with("accuracy") || metric.ends_with("top5") || metric.ends_with("matthews");
}

std::string unit_of(const std::string& metric) {
  return metric == "modelled_time_to" ? "seconds" : "";
}

std::string shown_number(const std::string& metric, double value) {
  if (!is_share(metric)) return printed("%.4g", value);
  const std::string text = printed("%.2f", 100 * value);
  return text == "-0.00" ? "0.00" : text;
}

int decimals_of(double mean) {
  if (mean == 0 || !std::isfinite(mean)) return 4;
  return std::clamp(3 - static_cast<int>(std::floor(std::log10(std::abs(mean)))), 0, 8);
}

std::string shown_mean(bool percent, double mean, double std) {
  constexpr double kSmall = 1e-5;  // eight decimals would not show four digits
  const double scale = percent ? 100 : 1;
  const int decimals = percent ? 2 : decimals_of(mean);
  const bool small = !percent && mean != 0 && std::abs(mean) < kSmall;
  std::string text = small ? printed("%.3e", mean) : printed("%.*f", decimals, scale * mean);
  if (std::isfinite(std))
    text += " ± " + (small ? printed("%.1e", std) : printed("%.*f", decimals, scale * std));
  return text;
}

}  // namespace pipewright
