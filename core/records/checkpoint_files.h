/// The names that checkpoints give to files and folders, so that nothing else is ever removed.
///
///   checkpoint/manifest.json, manifest.previous.json, steps-000000.csv
///   checkpoint/000012/stage-0.safetensors, stage-0.replica-1.safetensors,
///                     edges-0.replica-0.safetensors, exchange-0.replica-0.safetensors,
///                     metrics.safetensors
///
/// A name may end in ".<process>.part": then a process was writing it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Whether a file beside the manifest bears one of our names.
bool is_checkpoint_file(std::string_view name);
/// Whether a folder beside the manifest bears the name of a checkpoint ("000012").
bool is_checkpoint_folder(std::string_view name);
/// "000012"
std::string checkpoint_folder_name(std::int64_t minibatches);

/// Names in a folder, none where it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Removes the files of one checkpoint but those called as in `kept`, and its folder if it is empty
/// then. Files with other names stay, and links are not followed. Silent where it cannot.
void remove_checkpoint(const std::filesystem::path& folder,
                       const std::vector<std::string>& kept = {});

/// The same with everything that checkpoints leave in `checkpoints`, the manifests first.
void remove_checkpoints(const std::filesystem::path& checkpoints);

}  // namespace pipewright
