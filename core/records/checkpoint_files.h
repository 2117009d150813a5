// SPDX-License-Identifier: Apache-2.0
/// The names of checkpoints' files and folders. Only entries with these names are ever removed.
///
///   checkpoint/manifest.json, manifest.previous.json, steps-000000.csv
///   checkpoint/000012/stage-0.safetensors, stage-0.replica-1.safetensors,
///                     edges-0.replica-0.safetensors, exchange-0.replica-0.safetensors,
///                     metrics.safetensors
///
/// A name with the ending ".<process>.part" is a file that a process was writing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Whether a file beside the manifest has one of these names.
bool is_checkpoint_file(std::string_view name);
/// Whether a folder beside the manifest has the name of a checkpoint ("000012").
bool is_checkpoint_folder(std::string_view name);
/// Name of the folder of a checkpoint after so many mini-batches: "000012".
std::string checkpoint_folder_name(std::int64_t minibatches);

/// Names of a folder's entries in their order; none if there is no such folder. Throws Error{Data}
/// naming it if it cannot be read to its end.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Removes the files of one checkpoint except those named in `kept`, then its folder if it is
/// empty. Files with other names stay, and links are not followed. Ignores errors.
void remove_checkpoint(const std::filesystem::path& folder,
                       const std::vector<std::string>& kept = {});

/// Removes files that a process was writing, in `checkpoints` and in each checkpoint there. Links
/// are not followed. Throws Error{Data} if a folder cannot be read; other errors are ignored.
void remove_checkpoint_parts(const std::filesystem::path& checkpoints);

/// Removes all checkpoints in `checkpoints` in the same way, manifests first.
void remove_checkpoints(const std::filesystem::path& checkpoints);

}  // namespace pipewright
