// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "core/base/as_size.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"

namespace pipewright {
namespace {

/// Rows of cells; all rows have the same columns.
using Table = std::vector<std::vector<std::string>>;

std::string table_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (const auto& row : table)
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (column == widths.size()) widths.push_back(0);
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  std::string out;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column)
      line += row[column] + std::string(widths[column] - width_of(row[column]) + 2, ' ');
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

/// The versions that each kind of pass of one stage and replica reads, mini-batch by mini-batch.
using Reads = std::map<ActionKind, std::vector<std::string>>;

/// The reads of every (stage, replica); "0/1" when a mini-batch's passes of one kind differ.
std::map<std::pair<int, int>, Reads> reads_of(const ProvedSchedule& proved, int minibatches) {
  std::map<std::pair<int, int>, Reads> all;
  std::map<std::string*, std::string> last;  // the last version written into each cell
  for_each_action(proved.schedule, [&](ActionPlace place, const Action& action) {
    if (!is_pass(action.kind) || action.minibatch >= minibatches) return;
    auto& cells = all[{action.stage, action.replica}][action.kind];
    cells.resize(as_size(minibatches));
    std::string& cell = cells[as_size(action.minibatch)];
    const WeightKey& key = proved.versions.at(place).key;
    const std::string text = weights_text(key.version, key.ahead);
    if (cell.empty())
      cell = text;
    else if (last[&cell] != text)
      cell += "/" + text;
    last[&cell] = text;
  });
  return all;
}

void append_rows(Table& table, const std::string& stage, int depth, const StageVersions& versions,
                 const Reads& reads) {
  std::vector<std::string> front = {
      stage, std::to_string(depth), std::to_string(versions.forward_staleness),
      std::to_string(versions.backward_staleness), std::to_string(versions.copies)};
  for (const auto& [kind, cells] : reads) {
    auto& row = table.emplace_back(std::move(front));
    row.emplace_back(facts_of(kind).letter);
    row.insert(row.end(), cells.begin(), cells.end());
    front.assign(5, "");
  }
}

}  // namespace

std::string render_versions(const ProvedSchedule& proved, int minibatches) {
  const Schedule& schedule = proved.schedule;
  const int shown = std::clamp(minibatches, 0, schedule.shape.minibatches);
  const auto reads = reads_of(proved, shown);
  Table table = {{"stage", "D", "stale F", "stale B", "copies", ""}};
  for (int minibatch = 0; minibatch < shown; ++minibatch)
    table.front().push_back(concat("m", minibatch));
  for (const auto& [place, rows] : reads) {
    const auto [stage, replica] = place;
    if (replica > 0 && rows == reads.at({stage, 0})) continue;
    append_rows(table,
                replica > 0 ? concat(stage, " (replica ", replica, ")") : std::to_string(stage),
                schedule.shape.stages - 1 - stage,
                proved.versions.stages[as_size(stage)][as_size(replica)], rows);
  }
  return table_text(table) +
         "Columns m0, m1, …: the version of the stage's weights that the passes of mini-batch 0, "
         "1, … read;\n2→5(+3) is version 2 predicted 3 steps ahead, 0/1 are versions 0 and 1 for "
         "different micro-batches.\nD is the number of stages after this one. Staleness counts the "
         "prediction in.\n" +
         (schedule.earlier.empty() ? ""
                                   : "Versions -1, -2, … are those of the last updates before the "
                                     "pipe was drained; at the start of a training there are none, "
                                     "and version 0 stands for them.\n");
}

}  // namespace pipewright
