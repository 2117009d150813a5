// SPDX-License-Identifier: Apache-2.0
#include "tests/replay/grid.h"

#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright::replay {
namespace {

struct Form {
  PipelineShape shape;
  Recomputation recomputation = Recomputation::Never;
  bool loop = false;
};

/// Stages → micro-batches: fewer than the stages, as many and more.
const std::map<int, std::vector<int>> kSizes{
    {1, {1, 4}}, {2, {1, 2, 8}}, {3, {1, 4}}, {4, {1, 2, 8}}, {8, {1, 8}}};

/// Pipelines of all these sizes; then, for a few of them, what else a schedule depends on.
std::vector<Form> forms() {
  std::vector<Form> all;
  for (const auto& [stages, numbers] : kSizes)
    for (const int microbatches : numbers)
      all.push_back({{.stages = stages, .microbatches = microbatches, .minibatches = 5}});
  for (const int stages : {1, 3, 4})
    for (const int replicas : {2, 3})
      all.push_back(
          {{.stages = stages, .replicas = replicas, .microbatches = 4, .minibatches = 3}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 1}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 24}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 5, .first_minibatch = 1000}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 4, .link_capacity = 1}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 4, .placement = {0, 1, 0, 1}}});
  all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 4, .placement = {0, 1, 1, 0}}});
  all.push_back({{.stages = 4,
                  .microbatches = 4,
                  .minibatches = 4,
                  .skips = {{.from = 0, .to = 3}, {.from = 1, .to = 2, .gradient = false}}}});
  for (const Recomputation which : {Recomputation::Always, Recomputation::ExceptLast})
    all.push_back({{.stages = 4, .microbatches = 4, .minibatches = 4}, which});
  all.push_back({.shape = {.stages = 4, .microbatches = 4, .minibatches = 200}, .loop = true});
  return all;
}

std::string text_of(const Form& form) {
  const PipelineShape& shape = form.shape;
  std::string text =
      concat(counted(shape.stages, "stage"), ", ", counted(shape.microbatches, "micro-batch"), ", ",
             counted(shape.minibatches, "mini-batch"));
  if (shape.replicas > 1) text += concat(", ", shape.replicas, " replicas");
  if (shape.first_minibatch > 0) text += concat(", after mini-batch ", shape.first_minibatch - 1);
  if (shape.link_capacity > 0)
    text += concat(", links of ", counted(shape.link_capacity, "message"));
  if (!shape.placement.empty()) text += concat(", on workers ", list_text(shape.placement));
  if (!shape.skips.empty()) text += ", skip connections";
  if (form.recomputation == Recomputation::Always) text += ", recomputed";
  if (form.recomputation == Recomputation::ExceptLast) text += ", recomputed except the last";
  if (form.loop) text += ", as a loop";
  return text;
}

/// The options that are not their defaults, as they were given: {"version":2}; "" if there are
/// none.
std::string chosen_options(const SchemeReading& reading) {
  Value chosen = Value::mapping();
  const Value resolved = reading.options.resolved();
  for (const OptionInfo& info : reading.options.declared())
    if (const Value* given = reading.document.find(info.name);
        given != nullptr && *resolved.find(info.name) != info.fallback)
      chosen.at_or_add(info.name) = *given;
  return chosen.fields.empty() ? "" : concat(" ", to_json(chosen));
}

void add(std::vector<Case>& cases, const SchemeCase& scheme, const std::string& options,
         const Form& form) {
  Case made{.name = concat(scheme.name, options, ", ", text_of(form)),
            .scheme = scheme.name,
            .options = scheme.options,
            .shape = form.shape,
            .recomputation = form.recomputation,
            .loop = form.loop};
  cases.push_back(std::move(made));
}

/// The schedules of PyTorch's files, each in its own shape only.
void add_csv_schedules(std::vector<Case>& cases) {
  for (const char* file : {"dualpipev", "interleaved_1f1b", "looped_bfs", "zb1p", "zbv"})
    for (const int minibatches : {1, 3}) {
      const std::string name = concat("pytorch_", file, ".csv");
      Value options = Value::mapping();
      options.at_or_add("file") =
          Value::of((source_dir() / "tests/golden/schedule" / name).string());
      add(cases, {"csv_schedule", to_json(options)}, concat(" ", name),
          {{.stages = 4, .microbatches = 4, .minibatches = minibatches}});
    }
}

}  // namespace

std::vector<Case> every_case() {
  std::vector<Case> cases;
  const std::vector<Form> all_forms = forms();
  for (const SchemeCase& scheme : every_scheme()) {
    const std::string options = chosen_options({scheme.name, scheme.options});
    for (const Form& form : all_forms) add(cases, scheme, options, form);
  }
  for (const SchemeCase& scheme : schemes_that_share_workers())
    for (Form form : all_forms) {
      const bool odd = form.shape.stages % 2 != 0 || form.shape.replicas == 3;
      if (odd || !form.shape.placement.empty()) continue;
      form.shape.replicas = 2;
      if (shape_that_shares(scheme.name, form.shape) != form.shape) continue;
      add(cases, scheme, chosen_options({scheme.name, scheme.options}), form);
    }
  add_csv_schedules(cases);
  std::set<std::string> names;
  for (const Case& each : cases)
    PIPEWRIGHT_CHECK(names.insert(each.name).second, each.name, " is the name of two cases");
  return cases;
}

}  // namespace pipewright::replay
