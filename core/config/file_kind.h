// SPDX-License-Identifier: Apache-2.0
/// Files of a known kind: descriptions of hardware, costs, profiles. A file that is of none is not
/// quoted in messages, because it may be any file of the user.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

struct FileKind {
  std::string name;               ///< "description of hardware"
  std::vector<std::string> keys;  ///< of its top level; a file of this kind has one of them
};

using KnownKey = std::function<bool(std::string_view)>;

/// Whether a line of the text begins with a known key ("model: …", "{"model": …").
bool begins_with_key(std::string_view text, const KnownKey& known);

/// The document of a text, as parse_yaml() reads it; nothing if it is no mapping with a known key,
/// or cannot be read and begins with none, so that the file may be of any kind.
std::optional<Value> parse_if_known(std::string_view text, const std::string& name,
                                    const KnownKey& known, Problems& faults);

/// Reads a file of that kind as load_yaml() does; one without anything is an empty mapping. Throws
/// Error{Experiment} in the file's name, without quoting it, if it is no mapping with a key of the
/// kind.
Value load_file_of(const FileKind& kind, const std::filesystem::path& path, Problems& faults);
Value load_file_of(const FileKind& kind, const std::filesystem::path& path);

}  // namespace pipewright
