// SPDX-License-Identifier: Apache-2.0
#include "core/synthesis/built_in_schedules.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/config/options.h"

namespace pipewright {
namespace {

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

std::vector<int> full_placement(const PipelineShape& shape) {
  std::vector<int> workers;
  for (int stage = 0; stage < shape.stages; ++stage) workers.push_back(shape.worker_of(stage, 0));
  return workers;
}

/// Whether the scheme places stages as in this shape if nobody tells it where.
bool places_so(const Scheme& scheme, const PipelineShape& shape) {
  PipelineShape own = shape;
  try {
    own.placement = scheme.placement(shape.stages);
  } catch (const Error&) {  // so many stages only where it is told
    return false;
  }
  return full_placement(own) == full_placement(shape);
}

/// Its schedule; nullopt if it cannot run in this shape, or only with stages elsewhere.
std::optional<ProvedSchedule> schedule_in(const Scheme& scheme, const PipelineShape& shape) {
  try {
    Schedule schedule = scheme.schedule(shape);
    if (full_placement(schedule.shape) != full_placement(shape)) return std::nullopt;
    for (auto& actions : schedule.workers)  // a search has no fused pairs
      for (Action& action : actions) action.with_next = false;
    return prove(std::move(schedule));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

// Schemes that place stages so by themselves come first, so that they are named among equals.
void for_each_built_in(
    const PipelineShape& shape,
    const std::function<bool(const std::string& name, const ProvedSchedule& proved)>& take) {
  const int workers = shape.workers_per_replica();
  const int chunks = (shape.stages + workers - 1) / workers;
  for (const bool by_themselves : {true, false})
    for (const std::string& name : Registry<Scheme>::instance().names()) {
      const auto scheme = made(*Registry<Scheme>::instance().find(name), chunks);
      if (!scheme || places_so(*scheme, shape) != by_themselves) continue;
      if (const auto proved = schedule_in(*scheme, shape); proved && !take(name, *proved)) return;
    }
}

}  // namespace pipewright
