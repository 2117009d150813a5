// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/cost/stage_names.h"

namespace pipewright {
namespace {

struct CutRow {
  std::size_t begin = 0, end = 0;
  double seconds = 0;  ///< or operations, if no times are known
  double parameters = 0;
  std::int64_t memory = 0;
};

std::vector<CutRow> rows_of(const Profile& profile, const StageMemories& memories,
                            const CutRules& rules, std::span<const std::int64_t> balance) {
  std::vector<CutRow> rows;
  const std::vector<StageMemory> needed = memories.of_cut(balance);
  std::size_t begin = 0;
  for (const std::int64_t layers : balance) {
    CutRow row{.begin = begin, .end = begin + static_cast<std::size_t>(layers)};
    row.memory = needed[rows.size()].total();
    for (std::size_t i = row.begin; i < row.end; ++i) {
      row.parameters += static_cast<double>(profile.layers[i].parameters);
      if (!profile.timed) row.seconds += profile.layers[i].flops;
    }
    if (profile.timed) row.seconds = stage_seconds(profile, row.begin, row.end, rules);
    begin = row.end;
    rows.push_back(row);
  }
  return rows;
}

std::string percent(double share) {
  return concat(std::round(1000 * share) / 10, " %");
}

std::string weight_text(const Profile& profile, double weight) {
  return profile.timed ? time_text(weight) : count_text(weight);
}

/// The line that names the stage that keeps the cut from being faster.
std::string limit(const Profile& profile, const std::vector<CutRow>& rows,
                  const std::vector<std::string>& names) {
  const auto slowest = std::ranges::max_element(rows, {}, &CutRow::seconds);
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0,
                                     [](double a, const CutRow& row) { return a + row.seconds; });
  if (sum == 0) return {};
  const double mean = sum / static_cast<double>(rows.size());
  const auto stage = static_cast<std::size_t>(slowest - rows.begin());
  std::string text = concat("stage ", stage, " (", names[stage],
                            ") limits: ", weight_text(profile, slowest->seconds), " where ",
                            weight_text(profile, mean), " each would be ideal; imbalance ",
                            percent(slowest->seconds / mean - 1));
  if (slowest->end - slowest->begin == 1 && rows.size() > 1)
    text += "; it is one layer, which cannot be cut";
  return text + '\n';
}

}  // namespace

std::vector<std::string> stage_names(const Profile& profile,
                                     std::span<const std::int64_t> balance) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  for (const std::int64_t layers : balance) {
    const std::size_t end = begin + static_cast<std::size_t>(layers);
    const std::string &first = profile.layers[begin].name, &last = profile.layers[end - 1].name;
    names.push_back(layers == 1 ? first : concat(first, " … ", last));
    begin = end;
  }
  return names;
}

std::string render_cut(const Profile& profile, const StageMemories& memories, const CutRules& rules,
                       std::span<const std::int64_t> balance) {
  const std::vector<CutRow> rows = rows_of(profile, memories, rules, balance);
  const std::vector<std::string> names = stage_names(profile, balance);
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0,
                                     [](double a, const CutRow& row) { return a + row.seconds; });
  TextTable table({"stage", "layers", "", profile.timed ? "time" : "operations", "share",
                   "parameters", "memory", "sends on"},
                  {2});
  for (std::size_t stage = 0; stage < rows.size(); ++stage) {
    const CutRow& row = rows[stage];
    const bool last = stage + 1 == rows.size();
    table.add({std::to_string(stage), std::to_string(row.end - row.begin), names[stage],
               weight_text(profile, row.seconds), percent(sum > 0 ? row.seconds / sum : 0),
               count_text(row.parameters), bytes_text(row.memory),
               last ? "" : bytes_text(profile.layers[row.end - 1].output_bytes)});
  }
  return table.text() + '\n' + limit(profile, rows, names);
}

std::string render_plan(const Profile& profile, const PipeDreamPlan& plan) {
  TextTable table({"stage", "replicas", "layers", ""}, {3});
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const PipeDreamStage& stage = plan.stages[i];
    const std::string &first = profile.layers[stage.begin].name,
                      &last = profile.layers[stage.end - 1].name;
    table.add({std::to_string(i), std::to_string(stage.replicas),
               std::to_string(stage.end - stage.begin),
               first == last ? first : concat(first, " … ", last)});
  }
  const bool equal = std::ranges::all_of(plan.stages, [&](const PipeDreamStage& stage) {
    return stage.replicas == plan.stages[0].replicas;
  });
  return concat(table.text(), "\nThe plan predicts a mini-batch every ", time_text(plan.seconds),
                equal ? concat("; run it with pipeline.stages: ", plan.stages.size(),
                               ", replicas: ", plan.stages[0].replicas)
                      : "; it is only reported, because its stages have different numbers of "
                        "replicas: our pipelines have as many of every stage",
                '\n');
}

}  // namespace pipewright
