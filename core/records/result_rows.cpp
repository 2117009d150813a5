// SPDX-License-Identifier: Apache-2.0
#include "core/records/result_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/config/json.h"

namespace pipewright {
namespace {

/// Metrics that tell of the machine and not of the training.
bool is_of_the_load(const std::string& metric) {
  constexpr std::array kNames{"seconds", "samples_per_second", "required_mib_per_s", "codec_share"};
  return std::ranges::find(kNames, metric) != kNames.end();
}

bool is_same_number(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Adds what run.json says of the machine and the program; nothing if it cannot be read.
void add_origin(const std::filesystem::path& folder, ResultRow& row) {
  try {
    const Value run = load_json(folder / "run.json");
    row.wall_seconds = number_at(run, "wall_seconds");
    row.processor_seconds = number_at(run, "processor_seconds");
    row.processor = text_at(run, "processor");
    row.instruction_set = text_at(run, "instruction_set");
    row.version = text_at(run, "pipewright");
    row.commit = text_at(run, "commit");
    row.started = text_at(run, "started");
  } catch (const Error&) {
    return;
  }
}

/// The run's value of a key, "" if it has none.
std::string setting_of(const RunRecord& run, const std::string& key) {
  const std::optional<Value> value = run.setting(key);
  return value ? plain_text(*value) : std::string();
}

void add_metrics(const RunRecord& run, ResultRow& row) {
  row.epochs = run.epochs.size();
  const auto epoch = run.column("epoch");
  for (std::size_t i = 0; i < row.epochs; ++i)
    if (!epoch || run.epochs[i].at(*epoch) != static_cast<double>(i))
      throw Error(ErrorKind::Data,
                  concat("row ", i + 1, " is not of epoch ", i, "; expected all epochs in order"),
                  (run.folder / "epochs.csv").string());
  for (const std::string& column : run.columns)
    if (column != "epoch") row.metrics[column] = run.values_of(column);
}

bool is_of_one_processor(const ResultRow& a, const ResultRow& b) {
  return !a.processor.empty() && a.processor == b.processor &&
         a.instruction_set == b.instruction_set;
}

/// The label and what distinguishes the run from others of it.
std::string title_of_row(const ResultRow& row) {
  const auto seed = row.settings.find("train.seed");
  return seed == row.settings.end() ? row.label : concat(row.label, " seed ", seed->second);
}

/// Adds the metrics that a row does not have. Whether there were any.
bool add_missing_metrics(const ResultRow& from, ResultRow& row) {
  bool added = false;
  for (const auto list : {&ResultRow::metrics, &ResultRow::evaluations})
    for (const auto& [metric, values] : from.*list)
      added = (row.*list).try_emplace(metric, values).second || added;
  for (const auto& [key, value] : from.settings) row.settings.try_emplace(key, value);
  return added;
}

}  // namespace

std::optional<ResultRow> row_of(const RunRecord& run, const std::string& digest,
                                const std::vector<std::string>& keys) {
  if (run.state != "done" && run.state != "failed") return std::nullopt;
  constexpr std::size_t kLongest = 300;  // characters of a reason
  ResultRow row;
  row.digest = digest;
  row.label = run.label;
  row.state = run.diverged() ? "diverged" : run.state;
  row.why = run.done() ? std::string() : printable(run.error, kLongest);
  for (const std::string& key : keys)
    if (std::string text = setting_of(run, key); !text.empty()) row.settings[key] = std::move(text);
  row.precision = setting_of(run, "train.precision");
  add_origin(run.folder, row);
  add_metrics(run, row);
  row.evaluations = run.evaluations;
  return row;
}

void take_row(const ResultRow& row, RunRecord& run) {
  run.state = row.state == "done" ? "done" : "failed";
  run.error = row.why;
  run.fault.clear();
  run.exit_code = row.state == "diverged" ? static_cast<int>(ErrorKind::NotFinite) : 0;
  run.columns = {"epoch"};
  run.epochs.assign(row.epochs, {});
  run.evaluations = row.evaluations;
  for (std::size_t i = 0; i < row.epochs; ++i) run.epochs[i].push_back(static_cast<double>(i));
  for (const auto& [metric, values] : row.metrics) {
    run.columns.push_back(metric);
    for (std::size_t i = 0; i < row.epochs; ++i) run.epochs[i].push_back(values[i]);
  }
}

std::string changes_of_results(const ResultRow& before, const ResultRow& now) {
  if (before.state != now.state) return concat("it is ", now.state, " and was ", before.state);
  if (before.epochs != now.epochs)
    return concat("it has ", counted(now.epochs, "epoch"), " and had ", before.epochs);
  for (const auto& [list, of] :
       {std::pair(&ResultRow::metrics, "epoch"), std::pair(&ResultRow::evaluations, "evaluation")})
    for (const auto& [metric, values] : before.*list) {
      const auto found = (now.*list).find(metric);
      if (is_of_the_load(metric) || found == (now.*list).end()) continue;
      if (values.size() != found->second.size())
        return concat("it has ", counted(found->second.size(), of), " and had ", values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!is_same_number(values[i], found->second[i]))
          return concat(metric, " of ", std::string_view(of), " ", i, " is ", found->second[i],
                        " and was ", values[i]);
    }
  return {};
}

MergedRows merged_rows(std::vector<ResultRow> rows, const std::vector<ResultRow>& runs,
                       const std::filesystem::path& file) {
  MergedRows merged{.rows = std::move(rows)};
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < merged.rows.size(); ++i) known.emplace(merged.rows[i].digest, i);
  Problems problems;
  for (const ResultRow& run : runs) {
    const auto [found, added] = known.emplace(run.digest, merged.rows.size());
    if (added) {
      merged.rows.push_back(run);
      ++merged.added;
      continue;
    }
    ResultRow& row = merged.rows[found->second];
    if (!run.finished() && row.finished()) continue;
    if (!row.finished()) {
      merged.replaced += run.finished() || !changes_of_results(row, run).empty() ? 1 : 0;
      row = run;
    } else if (const std::string changes = changes_of_results(row, run); changes.empty()) {
      merged.replaced += add_missing_metrics(run, row) ? 1 : 0;
    } else if (is_of_one_processor(row, run)) {
      problems.add({file.string(), 0, 0},
                   concat("the row of ", title_of_row(run), " (", run.digest,
                          ") has other results than the run: ", changes, ", by Pipewright ",
                          run.version, " and ", row.version,
                          " on the same processor; take the row out to keep those of the run"),
                   ErrorKind::Data);
    } else {
      merged.elsewhere.push_back(concat(title_of_row(run), " (", changes, ")"));
    }
  }
  problems.throw_if_any();
  return merged;
}

}  // namespace pipewright
