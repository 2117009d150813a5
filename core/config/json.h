// SPDX-License-Identifier: Apache-2.0
/// Reads JSON files of our own (run.json, point.json), much faster than the YAML reader could.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/value.h"

namespace pipewright {

/// Parses a JSON text into values without places. Throws Error{Data} naming `name` if the text is
/// not JSON, has a key twice in a mapping, nests deeper than kDeepestNesting levels or has more
/// than 1,000,000 values.
Value parse_json(std::string_view text, const std::string& name);

/// The text that a mapping has under a key; "" if it has none there.
std::string text_at(const Value& mapping, std::string_view key);
/// The number that a mapping has under a key; kNoNumber if it has none there.
double number_at(const Value& mapping, std::string_view key);

/// A value as titles and tables have it: a text as it stands, the number 1e-1 as "0.1", and others
/// as JSON.
std::string plain_text(const Value& value);

/// A mapping whose fields are in the order given.
Value mapping_of(std::vector<std::pair<std::string, Value>> fields);

/// Reads and parses a file of at most 16 MiB. Throws as parse_json(), and Error{Data} if it cannot
/// be read.
Value load_json(const std::filesystem::path& path);

}  // namespace pipewright
