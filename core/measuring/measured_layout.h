// SPDX-License-Identifier: Apache-2.0
/// What the layout of a training leaves to measurements: the memory format, then the cut. Process 0
/// decides both once, from existing profiles or ones that it measures; from then on they are a
/// format and a list like any other. Profiles lie beside the run folders: the first run that needs
/// one measures it, and all runs there share it, those of a sweep too.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/cost/profile.h"
#include "core/experiment/experiment.h"
#include "core/runtime/team.h"

namespace pipewright {

/// Where what an experiment leaves to measurements is found or recorded.
struct LayoutRequest {
  std::filesystem::path runs;      ///< the folder of run folders
  std::filesystem::path recorded;  ///< configuration of a run to be resumed; empty: none
  std::function<void(const std::string&)> tell;  ///< prints progress; may be empty
  bool of_sweep = false;                         ///< the runs there are to have one cut
};

/// The device on which an experiment is measured: that of its first worker.
at::Device profiled_device(const Experiment& experiment);

/// Path of the experiment's profile in the folder of run folders: "profile-<16 hex digits>.yaml".
std::filesystem::path profile_path(const Experiment& experiment, at::Device device,
                                   const std::filesystem::path& folder);

/// Reads a profile. Throws Error{Experiment} if the file is not one, and, at `where`, if it is not
/// of this experiment on that device; for `balance: memory` one counted on the meta device will do.
Profile load_profile(const std::filesystem::path& file, const Experiment& experiment,
                     at::Device device, const std::string& where);

/// The experiment's layout with all decided that `pipeline.memory_format: auto` and
/// `pipeline.balance: time | memory` leave open. Collective, unless nothing is. Throws
/// Error{Experiment}.
Layout settle_layout(const Experiment& experiment, const LayoutRequest& request, Team& team);

/// The same with only the format decided. Without convolutions it is contiguous, and nothing is
/// measured.
Layout settle_memory_format(const Experiment& experiment, const LayoutRequest& request, Team& team);

/// A remark for the user if the experiment asks for channels-last memory in vain, or "".
std::string memory_format_remark(const Experiment& experiment);

}  // namespace pipewright
