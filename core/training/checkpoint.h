/// Everything a run needs to go on as if it had never stopped. Each process writes the stages it
/// holds, then process 0 commits the manifest: until then the previous checkpoint stands. The last
/// two are kept.
///
///   stage-<k>.safetensors            weights, buffers and optimizer state, named by layer, so that
///                                    any other cut into stages finds them
///   stage-<k>.replica-<r>.safetensors  buffers of the other replicas, where there are any
///   edges-<k>.replica-<r>.safetensors  what the ends of its edges remember, where codecs do
///   exchange-<k>.replica-<r>.safetensors  PowerSGD's errors and factors, where replicas use it
///   metrics.safetensors              epochs, losses of the open epoch and traffic so far
///
/// Besides, steps-<n>.csv in the folder of all checkpoints has the losses of all steps
/// (step_log.h).
///
/// Order, augmentation, dropout and learning rate are functions of seed, epoch and mini-batch: the
/// number of mini-batches is the position of the loader and of every random stream.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/processes/team.h"
#include "core/stage/stage.h"
#include "core/training/plan.h"
#include "core/training/step_log.h"
#include "core/training/training_state.h"

namespace pipewright {

/// Collective, at the beginning of a training: a manifest of no checkpoint yet, so that a lost one
/// is noticed from now on. Removes what is there.
void begin_checkpoints(const std::filesystem::path& checkpoints, const Plan& plan, Team& team);

/// Collective. Null stages are held by other processes; every stage is held by somebody. Throws
/// Error{Data} if it cannot be written: then the previous checkpoint is still there. `steps`:
/// process 0's step log, which is synced, or null.
void save_checkpoint(const std::filesystem::path& checkpoints, const Plan& plan,
                     const std::vector<std::unique_ptr<Stage>>& stages,
                     const std::vector<std::unique_ptr<EdgeEnds>>& edges,
                     const std::vector<std::unique_ptr<GradientExchange>>& exchanges,
                     const TrainingState& state, const StepLog* steps, Team& team);

struct LoadedCheckpoint {
  TrainingState state;
  StepLogPart steps;                 ///< how much of the step log belongs to it
  std::vector<std::string> remarks;  ///< what a person should know about another layout
};

/// Collective. Puts the last checkpoint that is whole into freshly made stages, of which null ones
/// are left out; nothing if there is none. The layout may be another one: new replicas start with
/// replica 0's buffers, heads after other layers anew, and with other stages or replicas what edges
/// and exchanges remember, too. Throws Error{Data} if all are damaged, do not fit or are not the
/// same for all processes, Error{Experiment} if another experiment wrote it.
std::optional<LoadedCheckpoint> load_checkpoint(
    const std::filesystem::path& checkpoints, const Plan& plan,
    const std::vector<std::unique_ptr<Stage>>& stages,
    const std::vector<std::unique_ptr<EdgeEnds>>& edges,
    const std::vector<std::unique_ptr<GradientExchange>>& exchanges, Team& team);

}  // namespace pipewright
