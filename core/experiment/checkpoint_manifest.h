/// The manifest of a checkpoint: which files belong to it and what they must be. Writing it is the
/// moment a checkpoint comes into being; files that no manifest names are nothing.
///
///   checkpoint/manifest.json                {"minibatches": 12, "files": [{"name": …}, …], …}
///   checkpoint/000012/stage-0.safetensors   … what checkpoint.h says
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"

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
  std::string identity;             ///< of the experiment
  Value layout = Value::mapping();  ///< it was written under
  std::vector<std::string> slots;   ///< of the optimizer
  std::vector<CheckpointFile> files;

  /// "000012": the folder of the files.
  std::string folder() const;
};

/// A description of a file that lies there. Throws Error{Data}.
CheckpointFile described_file(const std::filesystem::path& path);
/// Throws Error{Data} naming the file if it is not as described.
void check_file(const std::filesystem::path& path, const CheckpointFile& file);

/// The manifest in the checkpoints' folder; nothing if no checkpoint was ever begun there. Throws
/// Error{Data} for a damaged one, and for none where files of checkpoints are.
std::optional<CheckpointManifest> read_manifest(const std::filesystem::path& checkpoints);

/// Writes it atomically; then removes the files of other checkpoints.
void commit_manifest(const std::filesystem::path& checkpoints, const CheckpointManifest& manifest);

/// The files of a list of CheckpointFile::value(). Throws Error{Data}; `where` says what was read.
std::vector<CheckpointFile> read_files(const Value& list, const std::string& where);

}  // namespace pipewright
