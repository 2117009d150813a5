/// The manifest of a checkpoint: which files belong to it and what they must be. Writing it is the
/// moment a checkpoint comes into being; files that no manifest names are nothing. The one before
/// is kept, for the case that the newest is damaged.
///
///   checkpoint/manifest.json                {"minibatches": 12, "files": [{"name": …}, …], …}
///   checkpoint/manifest.previous.json       the same, of the checkpoint before
///   checkpoint/000012/stage-0.safetensors   … what checkpoint.h says
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/value.h"
#include "core/training/step_log.h"

namespace pipewright {

struct CheckpointFile {
  std::string name;  ///< within the manifest's folder
  std::int64_t bytes = 0;
  std::string checksum;    ///< CRC-32, 8 hex digits
  int replica = 0;         ///< whose tensors they are; replica 0's stand for all but buffers
  std::int64_t steps = 0;  ///< updates of the stage

  Value value() const;
};

struct CheckpointManifest {
  std::int64_t minibatches = 0;     ///< trained
  int epochs = 0;                   ///< that were asked for
  std::string identity;             ///< of the experiment
  Value layout = Value::mapping();  ///< it was written under
  std::vector<std::string> slots;   ///< of the optimizer
  StepLogPart steps;
  std::vector<CheckpointFile> files;

  /// "000012": the folder of the files.
  std::string folder() const;
};

/// A description of a file that lies there. Throws Error{Data}.
CheckpointFile described_file(const std::filesystem::path& path);
/// Throws Error{Data} naming the file if it is not as described.
void check_file(const std::filesystem::path& path, const CheckpointFile& file);

/// A manifest that is there, or what is wrong with it.
struct FoundManifest {
  std::optional<CheckpointManifest> manifest;
  std::optional<Error> damage;  ///< Data; where there is no manifest
  std::string digest;           ///< of its content; of the damage
};

/// The newest manifest, then the one before. Empty if no checkpoint was ever begun there; the
/// newest is damaged where it is missing, but checkpoints are there.
std::vector<FoundManifest> find_manifests(const std::filesystem::path& checkpoints);

/// The newest one, or nothing. Throws its damage.
std::optional<CheckpointManifest> read_manifest(const std::filesystem::path& checkpoints);

/// Writes it atomically; then the one that it follows becomes the previous one, if that is of a
/// checkpoint and whole; then removes the files of other checkpoints.
void commit_manifest(const std::filesystem::path& checkpoints, const CheckpointManifest& manifest);

/// The files of a list of CheckpointFile::value(). Throws Error{Data}; `where` says what was read.
std::vector<CheckpointFile> read_files(const Value& list, const std::string& where);

}  // namespace pipewright
