// SPDX-License-Identifier: Apache-2.0
/// The stage replicas that this process holds, and their files in a checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/stage/stage.h"
#include "core/training/checkpoint_manifest.h"
#include "core/training/plan.h"

namespace pipewright {

/// A stage replica and what belongs to it.
struct HeldReplica {
  int replica = 0;
  Stage* stage = nullptr;
  EdgeEnds* ends = nullptr;              ///< null without compression
  GradientExchange* exchange = nullptr;  ///< null if gradients are summed uncompressed
  /// "heads.0.", and what stands for it in checkpoints, which name a head after the layer before
  /// it, because another cut may lack its stage.
  std::string head, head_after;
};

/// The stages that are not null, each with its edges' ends and its exchange. The vectors are the
/// plan's; those of edges and exchanges may be empty.
std::vector<HeldReplica> held_replicas(
    const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
    const std::vector<std::unique_ptr<EdgeEnds>>& edges = {},
    const std::vector<std::unique_ptr<GradientExchange>>& exchanges = {});

/// Names of all kinds of optimizer state that any of these stages has.
std::vector<std::string> slot_names(std::span<const HeldReplica> replicas);

/// Writes the files of these replicas, but does not sync the folder. Returns their descriptions.
Value write_replicas(const std::filesystem::path& folder, const std::vector<HeldReplica>& replicas);

/// Restores fresh replicas from these files. `same`: stages and replicas are those of the
/// checkpoint. `check`: this process has not verified the files. Returns remarks for the user on
/// what could not be restored. Throws Error{Data} if a tensor is missing or does not fit.
std::vector<std::string> read_replicas(const std::filesystem::path& folder,
                                       const CheckpointManifest& manifest,
                                       const std::vector<HeldReplica>& replicas, bool same,
                                       bool check);

}  // namespace pipewright
