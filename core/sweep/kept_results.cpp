// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/kept_results.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/config/merge.h"
#include "core/tables/claims.h"
#include "core/tables/plot_spec.h"
#include "core/tables/probe_metrics.h"
#include "core/tables/table_spec.h"

namespace pipewright {
namespace {

/// The metrics that the document's reports name.
std::vector<std::string> named_metrics(const Value& document) {
  const TableSpec table = read_table_spec(document);
  std::vector<std::string> names{table.metric.name, read_plot_spec(document).metric.name};
  for (const TableKey& metric : table.beside) names.push_back(metric.name);
  for (const Claim& claim : read_claims(document)) names.push_back(claim.metric.name);
  return names;
}

/// The settings that vary between the runs, and the seed.
std::vector<std::string> stated_keys(const std::vector<RunRecord>& records) {
  std::set<std::string> keys{"train.seed"};
  for (const RunRecord& record : records)
    for (const auto& [key, value] : record.varied.fields)
      if (key != "label") keys.insert(key);
  return {keys.begin(), keys.end()};
}

}  // namespace

std::vector<std::string> point_digests(const Value& document) {
  constexpr std::size_t kDigits = 16;
  std::vector<std::string> digests;
  for (const SweepPoint& point : expand_sweep(document)) {
    const std::string folder = point.folder();
    PIPEWRIGHT_CHECK(folder.size() > kDigits, folder);
    digests.push_back(folder.substr(folder.size() - kDigits));
  }
  return digests;
}

KeptResults keep_results(std::vector<ResultRow> rows, const std::filesystem::path& file,
                         const Value& document, std::vector<RunRecord>& records) {
  const std::vector<std::string> digests = point_digests(document);
  PIPEWRIGHT_CHECK(digests.size() == records.size(), digests.size(), records.size());
  add_probe_columns(records, named_metrics(document));
  const std::vector<std::string> keys = stated_keys(records);
  std::vector<ResultRow> runs;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (auto row = row_of(records[i], digests[i], keys)) runs.push_back(*std::move(row));
  const std::set<std::string> ours(digests.begin(), digests.end());
  const std::set<std::string> before = [&] {
    std::set<std::string> all;
    for (const ResultRow& row : rows) all.insert(row.digest);
    return all;
  }();
  KeptResults kept{.merged = merged_rows(std::move(rows), runs, file)};
  kept.strange = static_cast<std::size_t>(
      std::ranges::count_if(before, [&](const std::string& each) { return !ours.contains(each); }));
  std::map<std::string, const ResultRow*> by_digest;
  for (const ResultRow& row : kept.merged.rows) by_digest.emplace(row.digest, &row);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto found = by_digest.find(digests[i]);
    if (found == by_digest.end() || !before.contains(digests[i])) continue;
    if (!found->second->finished() && records[i].state != "missing") continue;
    take_row(*found->second, records[i]);
    ++kept.used;
  }
  return kept;
}

std::vector<bool> have_rows(const std::vector<ResultRow>& rows,
                            const std::vector<std::string>& digests) {
  std::set<std::string> finished;
  for (const ResultRow& row : rows)
    if (row.finished()) finished.insert(row.digest);
  std::vector<bool> have;
  for (const std::string& digest : digests) have.push_back(finished.contains(digest));
  return have;
}

}  // namespace pipewright
