// SPDX-License-Identifier: Apache-2.0
/// Files of a known kind: descriptions of hardware, costs, profiles. A file that is of none is not
/// quoted in messages, because it may be any file of the user.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

struct FileKind {
  std::string name;               ///< "description of hardware"
  std::vector<std::string> keys;  ///< of its top level; a file of this kind has one of them
};

/// Whether a line of the text begins with a key that `known` accepts ("model: …", "{"model": …"),
/// or the text is a mapping in flow style that has one ("{name: a, model: …}").
bool begins_with_key(std::string_view text, const std::function<bool(std::string_view)>& known);

/// Reads a file of that kind as load_yaml() does; one without anything is an empty mapping. Throws
/// Error{Experiment} in the file's name, without quoting it, if none of its lines begins with a key
/// of the kind, or if it is no mapping with one.
Value load_file_of(const FileKind& kind, const std::filesystem::path& path, Problems& faults);
Value load_file_of(const FileKind& kind, const std::filesystem::path& path);

}  // namespace pipewright
