#include "core/experiment/run_store.h"

#include <unistd.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/experiment/run_record.h"
#include "core/experiment/sqlite.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// Nobody sees the file before its rename, so a crash costs nothing: no journal, no syncs.
constexpr const char* kSchema = R"(
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
BEGIN;
CREATE TABLE runs(
  folder TEXT PRIMARY KEY, label TEXT NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL,
  error TEXT NOT NULL, varied TEXT NOT NULL, config TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epochs(
  folder TEXT NOT NULL REFERENCES runs(folder), epoch INTEGER NOT NULL, metric TEXT NOT NULL,
  value REAL NOT NULL, PRIMARY KEY(folder, epoch, metric)) WITHOUT ROWID;
)";

void insert_epochs(const RunRecord& run, const std::string& folder, Statement& insert) {
  for (const std::vector<double>& row : run.epochs)
    for (std::size_t c = 1; c < row.size(); ++c)  // the first column is the epoch
      if (!std::isnan(row[c]))
        insert.bind(folder)
            .bind(static_cast<std::int64_t>(row[0]))
            .bind(run.columns[c])
            .bind(row[c])
            .step();
}

void fill(const fs::path& file, const std::vector<RunRecord>& runs) {
  Database database(file);
  database.execute(kSchema);
  Statement run_row(database, "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)");
  Statement epoch_row(database, "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?, ?)");
  for (const RunRecord& run : runs) {
    const std::string folder = run.folder.filename().string();
    run_row.bind(folder)
        .bind(run.label)
        .bind(run.state)
        .bind(run.digest)
        .bind(run.error)
        .bind(to_json(run.varied))
        .bind(to_json(run.config))
        .step();
    insert_epochs(run, folder, epoch_row);
  }
  database.execute("COMMIT");
}

}  // namespace

std::size_t rebuild_run_store(const fs::path& sweep_folder) {
  const std::vector<RunRecord> runs = read_runs(sweep_folder);
  const fs::path whole = sweep_folder / "results.sqlite";
  const fs::path part = concat(whole.string(), ".", ::getpid(), ".part");
  std::error_code failed;
  fs::remove(part, failed);
  try {
    fill(part, runs);
  } catch (...) {
    fs::remove(part, failed);
    throw;
  }
  fs::rename(part, whole, failed);
  if (failed)
    throw Error(ErrorKind::Data, concat("cannot rename: ", failed.message()), whole.string());
  return runs.size();
}

}  // namespace pipewright
