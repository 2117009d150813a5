// SPDX-License-Identifier: Apache-2.0
#include "core/drawing/render_plan.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/text_table.h"

namespace pipewright {

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
