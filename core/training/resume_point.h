// SPDX-License-Identifier: Apache-2.0
/// The checkpoint from which all processes of a team continue.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/runtime/team.h"
#include "core/training/checkpoint_manifest.h"

namespace pipewright {

struct ResumePoint {
  std::optional<CheckpointManifest> manifest;  ///< none: there is no checkpoint yet
  std::string remark;                          ///< why it is not the newest one; or ""
};

/// Collective: returns the newest checkpoint if all its files are undamaged, else the previous one.
/// The processes share the work of verifying files. `experiment` must be the same text in all
/// processes. Throws Error{Data} if processes see different checkpoints, with what each sees, or if
/// all checkpoints are damaged.
ResumePoint choose_checkpoint(const std::filesystem::path& checkpoints,
                              const std::string& experiment, Team& team);

}  // namespace pipewright
