// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_store.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/records/leftover_runs.h"
#include "core/records/sqlite.h"
#include "core/system/temporary_file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr double kLastEpoch = 1e15;  // larger numbers and NaN are not epochs

using Names = std::vector<std::string>;

/// The tables. The file is invisible before its rename, so it needs neither a journal nor syncs.
constexpr const char* kSchema = R"(
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
BEGIN;
CREATE TABLE runs(
  folder TEXT PRIMARY KEY, label TEXT NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL,
  error TEXT NOT NULL, varied TEXT NOT NULL, config TEXT NOT NULL, point INTEGER,
  started TEXT, finished TEXT) WITHOUT ROWID;
CREATE TABLE epochs(
  folder TEXT NOT NULL REFERENCES runs(folder), epoch INTEGER NOT NULL, metric TEXT NOT NULL,
  value REAL NOT NULL, PRIMARY KEY(folder, epoch, metric)) WITHOUT ROWID;
)";

std::string quoted(const std::string& text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out += c == quote ? std::string(2, quote) : std::string(1, c);
  return out + quote;
}

std::string name_in_sql(const std::string& name) {
  return quoted(name, '"');
}

void add_once(const std::string& name, Names& names) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// Keys that vary in some of the runs, in order of appearance, without the label, which has a
/// column of its own.
Names varied_keys(const std::vector<RunRecord>& runs) {
  Names keys;
  for (const RunRecord& run : runs)
    for (const auto& [key, value] : run.varied.fields)
      if (key != "label") add_once(key, keys);
  return keys;
}

Names metrics_of(const std::vector<RunRecord>& runs) {
  Names metrics;
  for (const RunRecord& run : runs)
    for (const std::string& column : run.columns)
      if (column != "epoch") add_once(column, metrics);
  return metrics;
}

std::string points_table(const Names& keys, const Names& metrics) {
  std::string sql = "CREATE TABLE points(point INTEGER PRIMARY KEY";
  for (const Names* names : {&keys, &metrics})
    for (const std::string& name : *names) sql += ", " + name_in_sql(name);
  return sql + ");";
}

std::string results_view(const Names& keys, const Names& metrics) {
  std::string sql = "CREATE VIEW results AS SELECT runs.point, runs.folder, runs.label, runs.state";
  for (const std::string& key : keys) sql += concat(", points.", name_in_sql(key));
  sql += ", (SELECT max(epoch) + 1 FROM epochs WHERE epochs.folder = runs.folder) AS epochs";
  for (const std::string& metric : metrics) sql += concat(", points.", name_in_sql(metric));
  return sql + " FROM runs JOIN points USING (point) ORDER BY runs.point;";
}

std::string curves_view(const Names& keys, const Names& metrics) {
  std::string sql = "CREATE VIEW curves AS SELECT runs.point, runs.folder, runs.label";
  for (const std::string& key : keys) sql += concat(", points.", name_in_sql(key));
  sql += ", epochs.epoch";
  for (const std::string& metric : metrics)
    sql += concat(", max(CASE epochs.metric WHEN ", quoted(metric, '\''),
                  " THEN epochs.value END) AS ", name_in_sql(metric));
  return sql +
         " FROM runs JOIN points USING (point) JOIN epochs USING (folder) WHERE runs.state = "
         "'done' "
         "GROUP BY runs.point, epochs.epoch ORDER BY runs.point, epochs.epoch;";
}

void bind(const Value* value, Statement& statement) {
  if (value == nullptr || value->is(Value::Kind::Null))
    statement.bind(kNoNumber);  // NULL
  else if (value->is(Value::Kind::Integer) || value->is(Value::Kind::Flag))
    statement.bind(value->is(Value::Kind::Flag) ? std::int64_t{value->flag} : value->integer);
  else if (value->is(Value::Kind::Number))
    statement.bind(value->number);
  else
    statement.bind(value->is(Value::Kind::Text) ? value->text : to_json(*value));
}

/// Inserts rows into `runs` and `epochs`.
class RunRows {
 public:
  explicit RunRows(const Database& database)
      : runs_(database, "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        epochs_(database, "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?, ?)") {}

  void add(const RunRecord& run, const Value& point) {
    const std::string folder = run.folder.filename().string();
    runs_.bind(folder)
        .bind(run.label)
        .bind(run.state)
        .bind(run.digest)
        .bind(run.error)
        .bind(to_json(run.varied))
        .bind(run.config.known() ? to_json(run.config.whole()) : "null");
    bind(&point, runs_);
    for (const std::string* date : {&run.started, &run.finished}) {
      const Value value = date->empty() ? Value() : Value::of(*date);
      bind(&value, runs_);
    }
    runs_.step();
    for (const std::vector<double>& row : run.epochs) add_epoch(run, folder, row);
  }

 private:
  void add_epoch(const RunRecord& run, const std::string& folder, const std::vector<double>& row) {
    if (!(std::abs(row[0]) < kLastEpoch)) return;
    for (std::size_t c = 1; c < row.size(); ++c)  // the first column is the epoch
      if (!std::isnan(row[c]))
        epochs_.bind(folder)
            .bind(static_cast<std::int64_t>(row[0]))
            .bind(run.columns[c])
            .bind(row[c])
            .step();
  }

  Statement runs_, epochs_;
};

void fill_points(const Database& database, const std::vector<RunRecord>& today, const Names& keys,
                 const Names& metrics) {
  std::string sql = "INSERT INTO points VALUES (?";
  for (std::size_t i = 0; i < keys.size() + metrics.size(); ++i) sql += ", ?";
  Statement row(database, (sql + ")").c_str());
  for (std::size_t i = 0; i < today.size(); ++i) {
    row.bind(static_cast<std::int64_t>(i + 1));
    for (const std::string& key : keys) bind(today[i].varied.find(key), row);
    for (const std::string& metric : metrics)
      row.bind(metric_of(today[i], metric, "last").value_or(kNoNumber));
    row.step();
  }
}

/// Fills a new file. Returns the number of runs.
std::size_t fill(const fs::path& file, const fs::path& sweep_folder,
                 const std::vector<RunRecord>& today) {
  const Names keys = varied_keys(today), metrics = metrics_of(today);
  Database database(file);
  database.execute(kSchema);
  for (const std::string& sql :
       {points_table(keys, metrics), results_view(keys, metrics), curves_view(keys, metrics)})
    database.execute(sql.c_str());
  fill_points(database, today, keys, metrics);
  RunRows rows(database);
  for (std::size_t i = 0; i < today.size(); ++i)
    rows.add(today[i], Value::of(static_cast<std::int64_t>(i + 1)));
  const std::vector<fs::path> leftovers = leftover_runs(sweep_folder, today);
  for (const fs::path& folder : leftovers) rows.add(read_run(folder), Value());
  database.execute("COMMIT");
  return today.size() + leftovers.size();
}

}  // namespace

std::size_t rebuild_run_store(const fs::path& sweep_folder, const std::vector<RunRecord>& today) {
  const fs::path whole = sweep_folder / "results.sqlite";
  TemporaryFile part(whole);
  const std::size_t runs = fill(part.name(), sweep_folder, today);
  part.rename(whole);
  return runs;
}

}  // namespace pipewright
