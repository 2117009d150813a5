/// `pipeline.balance: time | memory`: decided once by process 0, from a profile that is there or is
/// measured now, and from then on a list like any other.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/cost/stage_cut.h"
#include "core/experiment/experiment.h"
#include "core/runtime/processes/team.h"

namespace pipewright {

/// Where the profile of such an experiment is kept among the runs in a folder, so that they all,
/// a sweep's too, share it: "profile-<16 hex digits>.yaml".
std::filesystem::path profile_path(const Experiment& experiment, at::Device device,
                                   const std::filesystem::path& folder);

/// The profile in a file. Throws Error{Experiment} for a file that is none, and, at `where`, for
/// one that is of something else than this experiment on that device; `balance: memory` is content
/// with one that was counted on the meta device.
Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where);

/// What decides a cut of the experiment, with so many stages.
CutRules cut_rules(const Experiment& experiment, int stages);
/// Tensors as large as the weights that a stage keeps for its updates and predictions.
int optimizer_slots(const Experiment& experiment, const Schedule& schedule);
StageMemories stage_memories(const Experiment& experiment, const Profile& profile, int stages);

/// Cuts an experiment whose `balance: time | memory` is still to be decided by that profile, which
/// must be of its model. Does nothing where the cut is known.
void cut_by(Experiment& experiment, const Profile& profile);

struct BalanceRequest {
  std::filesystem::path runs;      ///< the folder of run folders
  std::filesystem::path recorded;  ///< experiment.yaml of a run to be resumed; empty: none
  std::function<void(const std::string&)> tell;  ///< "measuring 27 layers …"; may be empty
};

/// Does nothing where the cut is known. Otherwise collective: all have it afterwards, in `balance`
/// and `resolved`. Returns the profile where this process has read or measured it.
std::optional<Profile> settle_balance(Experiment& experiment, const BalanceRequest& request,
                                      Team& team);

}  // namespace pipewright
