// SPDX-License-Identifier: Apache-2.0
/// The manifest of a checkpoint: the list of its files with sizes and checksums. A checkpoint
/// exists from the moment its manifest is written; files that no manifest names are ignored. The
/// previous manifest is kept in case the newest checkpoint is damaged.
///
///   checkpoint/manifest.json                {"minibatches": 12, "files": [{"name": …}, …], …}
///   checkpoint/manifest.previous.json       manifest of the previous checkpoint
///   checkpoint/000012/stage-0.safetensors   files as in checkpoint.h
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/value.h"
#include "core/records/row_log.h"

namespace pipewright {

/// The numbers of a LossScale (core/nn/precision.h), in a header without LibTorch.
struct SavedLossScale {
  static constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  std::int64_t scale = 1, since = 0, skipped = 0;
};

struct CheckpointFile {
  std::string name;  ///< file name within the checkpoint's folder
  std::int64_t bytes = 0;
  std::string checksum;    ///< CRC-32, 8 hex digits
  int replica = 0;         ///< whose tensors it has; replica 0's weights are those of all
  std::int64_t steps = 0;  ///< updates of the stage so far
  std::optional<SavedLossScale> loss_scale = {};  ///< of the stage, in float16

  Value value() const;
};

struct CheckpointManifest {
  std::int64_t minibatches = 0;     ///< trained so far
  int epochs = 0;                   ///< train.epochs of the training
  std::int64_t train_steps = 0;     ///< train.steps of the training
  std::string identity;             ///< the experiment's (identity.h)
  Value layout = Value::mapping();  ///< the layout when it was written
  std::vector<std::string> slots;   ///< names of the optimizer's slots
  RowLogPart steps, probes;
  std::vector<CheckpointFile> files;

  /// Name of the checkpoint's folder: "000012".
  std::string folder() const;
};

/// Describes an existing file by its name, size and checksum. Throws Error{Data}.
CheckpointFile described_file(const std::filesystem::path& path);
/// Verifies size and checksum. Throws Error{Data} that names the file if they differ.
void check_file(const std::filesystem::path& path, const CheckpointFile& file);

/// A manifest on disk, or why it cannot be used.
struct FoundManifest {
  std::optional<CheckpointManifest> manifest;
  std::optional<Error> damage;  ///< Error{Data}, set if `manifest` is not
  std::string digest;           ///< of its content, or of the damage
};

/// The newest manifest, then the previous one. Empty if checkpoints were never begun there. A
/// missing newest manifest counts as damaged if there are checkpoints.
std::vector<FoundManifest> find_manifests(const std::filesystem::path& checkpoints);

/// The newest manifest, or nothing. Throws its damage.
std::optional<CheckpointManifest> read_manifest(const std::filesystem::path& checkpoints);

/// Writes the manifest by an atomic rename; then makes its predecessor the previous one, if that is
/// the undamaged manifest of a checkpoint; then removes the files of all other checkpoints.
void commit_manifest(const std::filesystem::path& checkpoints, const CheckpointManifest& manifest);

/// Reads a list of CheckpointFile::value(). Throws Error{Data} at `where`.
std::vector<CheckpointFile> read_files(const Value& list, const std::string& where);

}  // namespace pipewright
