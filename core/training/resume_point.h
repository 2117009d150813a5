/// Which checkpoint all processes of a team go on from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/runtime/processes/team.h"
#include "core/training/checkpoint_manifest.h"

namespace pipewright {

struct ResumePoint {
  std::optional<CheckpointManifest> manifest;  ///< nothing: there is no checkpoint yet
  std::string remark;                          ///< that, and why, it is not the newest one; or ""
};

/// Collective. The newest checkpoint whose files are all as they were written, else the one before;
/// the processes share the work of looking. `experiment`: what must be the same for all of them
/// besides. Throws Error{Data} if the processes see different checkpoints, saying what each sees,
/// or if those that are there are all damaged.
ResumePoint choose_checkpoint(const std::filesystem::path& checkpoints,
                              const std::string& experiment, Team& team);

}  // namespace pipewright
