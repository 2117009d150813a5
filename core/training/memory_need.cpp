// SPDX-License-Identifier: Apache-2.0
#include "core/training/memory_need.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/lent_weights.h"
#include "core/stage/stage.h"
#include "core/stage/weight_store.h"
#include "core/system/host_name.h"
#include "core/system/machine_limits.h"
#include "core/training/whole_model_probes.h"

namespace pipewright {
namespace {

constexpr const char* kWhatFor = "parameters, gradients and optimizer state";

/// Memory that a process needs on its machine.
struct HeldMemory {
  double bytes = 0;          ///< of the stages, of probes and of what follows
  double probes = 0;         ///< the part of probes
  double aside = 0;          ///< the part of weights that stages set aside for evaluations
  double fixed = 0;          ///< the part of numbers that the model fixes beside its parameters
  double on_devices = 0;     ///< bytes on other devices
  int largest = -1;          ///< stage that needs most
  double largest_bytes = 0;  ///< bytes of one replica of that stage
};

/// Adds what probes of the whole model need: copies of weights at all times, and where the pipeline
/// is drained what process 0 measures with, beside stages that then hold `drained` bytes.
void add_probes(const Plan& plan, const Team& team, double drained, HeldMemory& held) {
  const WholeModelNeed need = whole_model_need(plan);
  double kept = 0;
  for (std::size_t stage = 0; stage < need.kept.size(); ++stage)
    if (team.holds(plan.training.schedule.shape.worker_of(static_cast<int>(stage), 0)))
      kept += need.kept[stage];
  const bool measures = team.first() && plan.devices.front().is_cpu();
  const double measuring = measures ? drained + need.measuring : 0;
  held.probes = kept + std::max(0.0, measuring - held.bytes);
  held.bytes += held.probes;
}

/// Adds a copy of the weights of replica 0, where the training evaluates before it is drained.
void add_aside(const Plan& plan, const Team& team, HeldMemory& held) {
  if (!plan.drains.evaluates_within()) return;
  const auto layers = plan.experiment->stage_layers();
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    const int worker = plan.training.schedule.shape.worker_of(static_cast<int>(stage), 0);
    if (!team.holds(worker) || !plan.devices[as_size(worker)].is_cpu()) continue;
    for (const auto& [name, shape] : state_shapes(layers[stage]))
      held.aside += static_cast<double>(c10::multiply_integers(shape)) *
                    static_cast<double>(c10::elementSize(plan.experiment->train.precision.weights));
  }
  held.bytes += held.aside;
}

/// Adds what the model fixes for all stages of a process together, where one is on its CPU.
void add_fixed(const Experiment& e, HeldMemory& held) {
  if (held.bytes == 0) return;
  held.fixed = static_cast<double>(e.fixed_bytes());
  held.bytes += held.fixed;
}

HeldMemory held_by(const Plan& plan, const Team& team) {
  const PipelineShape& shape = plan.training.schedule.shape;
  HeldMemory held;
  double drained = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const StageNeed need = stage_need(plan, stage);
    const double bytes = need.bytes;
    for (int replica = 0; replica < shape.replicas; ++replica) {
      const int worker = shape.worker_of(stage, replica);
      if (!team.holds(worker)) continue;
      if (!plan.devices[as_size(worker)].is_cpu()) {
        held.on_devices += bytes;
        continue;
      }
      held.bytes += bytes;
      drained += need.drained;
      if (bytes > held.largest_bytes) held.largest = stage, held.largest_bytes = bytes;
    }
  }
  add_probes(plan, team, drained, held);
  add_aside(plan, team, held);
  add_fixed(*plan.experiment, held);
  return held;
}

[[noreturn]] void refuse(const HeldMemory& held, const MemoryLimit& limit, const Team& team) {
  const ErrorKind kind = team.size() > 1 ? ErrorKind::Worker : ErrorKind::Data;
  const std::string stage = concat("stage ", held.largest);
  if (held.largest_bytes > limit.bytes)
    throw Error(
        kind, concat("its ", kWhatFor, " need ", bytes_text(held.largest_bytes), "; ", limit.text),
        stage);
  throw Error(kind, concat("the stages' ", kWhatFor,
                           held.probes > 0 ? " and the probes' copies of weights" : "",
                           held.aside > 0 ? " and the weights set aside for evaluations" : "",
                           held.fixed > 0 ? " and the subspace's fixed vectors" : "", " need ",
                           bytes_text(held.bytes), " together, the most ", stage, " with ",
                           bytes_text(held.largest_bytes), "; ", limit.text));
}

/// A process's message to process 0, which adds up the processes of each host.
struct Note {
  std::array<char, 64> host{};
  HeldMemory held;
  double there = 0;  ///< memory of the host in bytes
};

std::string note_of(const HeldMemory& held) {
  Note note{.held = held, .there = machine_memory().bytes};
  host_name().copy(note.host.data(), note.host.size() - 1);
  return {reinterpret_cast<const char*>(&note), sizeof note};
}

void check_hosts(const std::vector<std::string>& notes, const Team& team) {
  std::map<std::string, Note> hosts;
  for (const std::string& bytes : notes) {
    Note note;
    std::memcpy(&note, bytes.data(), std::min(bytes.size(), sizeof note));
    const auto [at, added] = hosts.emplace(note.host.data(), note);
    if (added) continue;
    HeldMemory& all = at->second.held;
    all.bytes += note.held.bytes;
    all.probes += note.held.probes;
    all.aside += note.held.aside;
    all.fixed += note.held.fixed;
    if (note.held.largest_bytes > all.largest_bytes) {
      all.largest = note.held.largest;
      all.largest_bytes = note.held.largest_bytes;
    }
  }
  for (const auto& [host, note] : hosts)
    if (note.held.bytes > note.there)
      refuse(note.held, {note.there, concat("host ", host, " has ", bytes_text(note.there))}, team);
}

}  // namespace

StageNeed stage_need(const Plan& plan, int stage) {
  StageNeed need = plan.experiment->holdings(plan.training.schedule)
                       .need(parameter_shapes(plan.experiment->stage_layers()[as_size(stage)],
                                              plan.head_of(stage)),
                             plan.training.versions.stages[as_size(stage)][0].copies);
  need.bytes += static_cast<double>(most_borrowed(plan.training, stage));
  return need;
}

std::string memory_text(const Plan& plan) {
  const HeldMemory held = held_by(plan, Team());
  const MemoryLimit limit = memory_limit();
  std::string text =
      concat(bytes_text(held.bytes - held.probes - held.aside - held.fixed + held.on_devices),
             " for ", kWhatFor);
  if (held.probes > 0)
    text += concat(", and ", bytes_text(held.probes), " for the probes' copies of weights");
  if (held.aside > 0)
    text += concat(", and ", bytes_text(held.aside), " for weights set aside for evaluations");
  if (held.fixed > 0)
    text += concat(", and ", bytes_text(held.fixed), " for the subspace's fixed vectors");
  if (held.on_devices > 0)
    text +=
        concat(", ", bytes_text(held.on_devices), " of it on devices, whose memory is not seen");
  if (!limit.text.empty()) text += "; " + limit.text;
  if (const double free = free_memory(); held.bytes > free && held.bytes <= limit.bytes)
    text += concat(", of which ", bytes_text(free), " are free now");
  return text;
}

void check_memory(const Plan& plan) {
  if (plan.experiment->pipeline.execution == Execution::Mpi) return;
  Team alone;
  check_memory(plan, alone);
}

void check_memory(const Plan& plan, Team& team) {
  const HeldMemory held = held_by(plan, team);
  if (const MemoryLimit limit = memory_limit(); held.bytes > limit.bytes) refuse(held, limit, team);
  if (team.size() == 1) return;
  const auto notes = team.gather(note_of(held));
  if (team.first()) check_hosts(notes, team);
}

}  // namespace pipewright
