/// JSON as our own files hold it (run.json, point.json): much faster to read than as YAML.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/config/value.h"

namespace pipewright {

/// The values of a JSON text, without places. Of keys that are given twice the first counts.
/// Throws Error{Data} naming `name` where the text is no JSON, nests deeper than 100 levels or has
/// more than 1,000,000 values.
Value parse_json(std::string_view text, const std::string& name);

/// parse_json of a file of at most 16 MiB. Throws Error{Data} also when it cannot be read.
Value load_json(const std::filesystem::path& path);

}  // namespace pipewright
