// SPDX-License-Identifier: Apache-2.0
#include "core/config/file_kind.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/config/yaml_file.h"

namespace pipewright {
namespace {

/// The first key of a line: "model" of "model: …", "{"model": …" and "'model' : …"; "" where no ':'
/// follows.
std::string_view first_key(std::string_view line) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  const std::size_t begin = line.find_first_not_of(" \t{\"'\xEF\xBB\xBF");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = std::min(line.find_first_not_of(kLetters, begin), line.size());
  const std::size_t after = line.find_first_not_of(" \t\"'", end);
  const bool key = after != std::string_view::npos && line[after] == ':';
  return key ? line.substr(begin, end - begin) : std::string_view();
}

[[noreturn]] void refuse(const FileKind& kind, const std::filesystem::path& path) {
  throw experiment_error(path, "is no ", kind.name, ", which has keys such as '", kind.keys.front(),
                         ":'");
}

}  // namespace

bool begins_with_key(std::string_view text, const KnownKey& known) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (known(first_key(text.substr(at, end - at)))) return true;
    at = end + 1;
  }
  return false;
}

std::optional<Value> parse_if_known(std::string_view text, const std::string& name,
                                    const KnownKey& known, Problems& faults) {
  try {
    Problems own;
    Value document = parse_yaml(text, name, own);
    if (std::ranges::none_of(document.fields, known, [](const auto& field) { return field.first; }))
      return {};
    faults.add(own);
    return document;
  } catch (const Error&) {
    if (begins_with_key(text, known)) throw;
    return {};
  }
}

Value load_file_of(const FileKind& kind, const std::filesystem::path& path, Problems& faults) {
  const auto known = [&](std::string_view key) { return std::ranges::count(kind.keys, key) > 0; };
  const std::string text = read_yaml_file(path);
  const std::string_view content = trimmed(text);
  if (content.empty() || content == "{}") {
    Value nothing = Value::mapping();
    nothing.place = {path.string(), 1, 1};
    return nothing;
  }
  std::optional<Value> document = parse_if_known(text, path.string(), known, faults);
  if (!document) refuse(kind, path);
  return *std::move(document);
}

Value load_file_of(const FileKind& kind, const std::filesystem::path& path) {
  Problems faults;
  Value document = load_file_of(kind, path, faults);
  faults.throw_if_any();
  return document;
}

}  // namespace pipewright
