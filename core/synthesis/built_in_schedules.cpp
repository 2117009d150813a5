// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/built_in_schedules.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/config/options.h"
#include "core/schedule/validate.h"

namespace pipewright {
namespace {

std::vector<int> full_placement(const PipelineShape& shape) {
  std::vector<int> workers;
  for (int stage = 0; stage < shape.stages; ++stage) workers.push_back(shape.worker_of(stage, 0));
  return workers;
}

bool has_option(const Options& options, const std::string& name) {
  return std::ranges::any_of(options.declared(),
                             [&](const OptionInfo& info) { return info.name == name; });
}

/// The scheme with the options of the document; null if these are wrong.
std::unique_ptr<Scheme> made(const Registry<Scheme>::Entry& entry, const Value& document,
                             bool& has_chunks) {
  Problems problems;
  Options options(&document, "scheme", problems);
  std::unique_ptr<Scheme> scheme = entry.make(options);
  has_chunks = has_option(options, "chunks");
  return problems.empty() ? std::move(scheme) : nullptr;
}

std::unique_ptr<Scheme> made(const Registry<Scheme>::Entry& entry, int chunks) {
  bool has_chunks = false;
  std::unique_ptr<Scheme> scheme = made(entry, Value::mapping(), has_chunks);
  if (!has_chunks) return scheme;
  Value document = Value::mapping();
  document.at_or_add("chunks") = Value::of(chunks);
  return made(entry, document, has_chunks);
}

/// Its schedule; nullopt if it cannot run in this shape, or places stages elsewhere.
std::optional<Schedule> schedule_in(const Scheme& scheme, const PipelineShape& shape) {
  PipelineShape own = shape;
  try {
    own.placement = scheme.placement(shape.stages);
    if (full_placement(own) != full_placement(shape)) return std::nullopt;
    Schedule schedule = scheme.schedule(shape);
    for (auto& actions : schedule.workers)  // a search has no fused pairs
      for (Action& action : actions) action.with_next = false;
    validate(schedule);
    return schedule;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<NamedSchedule> built_in_schedules(const PipelineShape& shape) {
  const int workers = shape.workers_per_replica();
  const int chunks = (shape.stages + workers - 1) / workers;
  std::vector<NamedSchedule> all;
  for (const std::string& name : Registry<Scheme>::instance().names()) {
    const auto scheme = made(*Registry<Scheme>::instance().find(name), chunks);
    if (!scheme) continue;
    if (auto schedule = schedule_in(*scheme, shape)) all.push_back({name, *std::move(schedule)});
  }
  return all;
}

}  // namespace pipewright
