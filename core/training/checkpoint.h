// SPDX-License-Identifier: Apache-2.0
/// Checkpoints: everything a run needs to continue as if it had never stopped. Each process writes
/// the stages it holds, then process 0 commits the manifest; until then the previous checkpoint is
/// the valid one. The last two are kept.
///
///   stage-<k>.safetensors            weights, buffers and optimizer state, named by layer, so that
///                                    any other cut into stages finds them
///   stage-<k>.replica-<r>.safetensors  buffers of the other replicas, if there are any
///   edges-<k>.replica-<r>.safetensors  state of the codecs at the ends of its edges, if any
///   exchange-<k>.replica-<r>.safetensors  PowerSGD's errors and factors, if replicas use it
///   stash-<k>.replica-<r>.safetensors  older versions of its weights, if the next schedule reads
///                                    them
///   perturb-<k>.replica-0.safetensors  gradients and statistics that wait because the training is
///                                    disturbed, named by layer
///   metrics.safetensors              epochs, losses of the unfinished epoch, traffic so far
///
/// The losses of all steps are in steps-<n>.csv in the folder of all checkpoints (step_log.h).
///
/// Order, augmentation, dropout and learning rate are functions of seed, epoch and mini-batch, so
/// the number of trained mini-batches is the position of the loader and of every random stream.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/records/row_log.h"
#include "core/runtime/team.h"
#include "core/training/held_replica.h"
#include "core/training/plan.h"
#include "core/training/training_state.h"

namespace pipewright {

/// Collective, at the beginning of a training: removes all checkpoints and writes a manifest of
/// none, so that the loss of a later one is noticed.
void begin_checkpoints(const std::filesystem::path& checkpoints, const Plan& plan, Team& team);

/// The logs of process 0, which a checkpoint syncs; null: none.
struct RowLogs {
  const RowLog* steps = nullptr;
  const RowLog* probes = nullptr;
};

/// Collective: writes a checkpoint. `replicas` are those that this process holds; every one must be
/// held by one process. Throws Error{Data} if it cannot be written; the previous checkpoint then
/// remains.
void save_checkpoint(const std::filesystem::path& checkpoints, const Plan& plan,
                     const std::vector<HeldReplica>& replicas, const TrainingState& state,
                     const RowLogs& logs, Team& team);

struct LoadedCheckpoint {
  TrainingState state;
  RowLogPart steps, probes;          ///< parts of the row logs that belong to it
  std::vector<std::string> remarks;  ///< warnings for the user about another layout
};

/// Collective: loads the newest undamaged checkpoint into freshly made stages. Returns nothing if
/// there is none. The layout may differ: new replicas start with replica 0's buffers, heads that
/// follow other layers are initialised, and with other stages or replicas the state of edges and
/// exchanges starts anew. Throws Error{Data} if all checkpoints are damaged, one does not fit, or
/// processes see different ones, and Error{Experiment} if another experiment wrote it.
std::optional<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& checkpoints,
                                                const Plan& plan,
                                                const std::vector<HeldReplica>& replicas,
                                                Team& team);

}  // namespace pipewright
