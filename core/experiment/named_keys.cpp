// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/named_keys.h"

#include "core/reports/claims.h"
#include "core/reports/plot_spec.h"
#include "core/reports/run_keys.h"
#include "core/reports/table_spec.h"

namespace pipewright {

void check_named_keys(const Value& document, const std::vector<RunRecord>& runs) {
  Problems problems;
  const auto check = [&](const std::vector<TableKey>& keys, const char* what) {
    for (const TableKey& key : keys) check_key(key, what, runs, problems);
  };
  const auto check_match = [&](const TablePublished& published, const char* what) {
    for (const auto& [column, key] : published.match) check_key(key, what, runs, problems);
  };
  const TableSpec table = read_table_spec(document);
  check(table.rows, "table.rows");
  check(table.columns, "table.columns");
  if (table.published) check_match(*table.published, "table.published.match");
  check_plot_keys(read_plot_spec(document), runs, problems);
  check_claims(read_claims(document), runs, problems);
  problems.throw_if_any();
}

}  // namespace pipewright
