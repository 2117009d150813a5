// SPDX-License-Identifier: Apache-2.0
/// The cut for `pipeline.balance: time | memory`. Process 0 decides it once, from an existing
/// profile or one that it measures; from then on it is a list like any other.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/cost/stage_cut.h"
#include "core/experiment/experiment.h"
#include "core/runtime/processes/team.h"

namespace pipewright {

/// Path of the experiment's profile in the folder of run folders, where all runs, of a sweep too,
/// share it: "profile-<16 hex digits>.yaml".
std::filesystem::path profile_path(const Experiment& experiment, at::Device device,
                                   const std::filesystem::path& folder);

/// Reads a profile. Throws Error{Experiment} if the file is not one, and, at `where`, if it is not
/// of this experiment on that device; for `balance: memory` one counted on the meta device will do.
Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where);

/// The objective and limits of a cut into so many stages.
CutRules cut_rules(const Experiment& experiment, int stages);
/// Number of tensors of the weights' size that a stage keeps for its updates and predictions.
int optimizer_slots(const Experiment& experiment, const Schedule& schedule);
/// The memory of each possible stage under the experiment's schedule with so many stages.
StageMemories stage_memories(const Experiment& experiment, const Profile& profile, int stages);

/// Cuts the experiment by `profile`, which must be of its model. Does nothing if its cut is known.
void cut_by(Experiment& experiment, const Profile& profile);

struct BalanceRequest {
  std::filesystem::path runs;      ///< the folder of run folders
  std::filesystem::path recorded;  ///< configuration of a run to be resumed; empty: none
  std::function<void(const std::string&)> tell;  ///< prints progress; may be empty
};

/// Decides the cut and puts it into `balance` and `resolved`. Collective, except that it does
/// nothing if the cut is known. Returns the profile if this process has read or measured it.
std::optional<Profile> settle_balance(Experiment& experiment, const BalanceRequest& request,
                                      Team& team);

}  // namespace pipewright
