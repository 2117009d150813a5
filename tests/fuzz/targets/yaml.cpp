// SPDX-License-Identifier: Apache-2.0
// The reader of experiment files, and of the values of --set. A document that it takes, written as
// YAML and as JSON, is read as an equal one.
#include "core/config/json.h"
#include "core/config/value.h"
#include "tests/fuzz/document_memory.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

/// What `--set` makes of the text, or why it refuses it.
std::string as_scalar(std::string_view text) {
  try {
    return to_json(parse_scalar(text, "--set"));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::Experiment, error.what());
    return error.what();
  }
}

/// The reader that goes on after faults finds some wherever the strict one refuses.
void check_faults(std::string_view bytes, const Value* strict) {
  Problems faults;
  try {
    const Value value = parse_yaml(bytes, "fuzz.yaml", faults);
    require(faults.empty() == (strict != nullptr), "the strict reader knows of other faults");
    if (strict != nullptr) require(value == *strict, "the strict reader gives another value");
  } catch (const Error& error) {
    require(strict == nullptr && error.kind() == ErrorKind::Experiment, error.what());
  }
}

/// As many can be written out and read again; aliases make documents of more.
constexpr std::size_t kMostNodes = 90'000;

std::size_t nodes_in(const Value& value) {
  std::size_t nodes = 1;
  for (const Value& item : value.items) nodes += nodes_in(item);
  for (const auto& [key, field] : value.fields) nodes += 1 + nodes_in(field);
  return nodes;
}

/// JSON is YAML but for characters that only JSON may have unescaped: DEL, U+0080 to U+009F, the
/// line and paragraph separators, and a byte order mark.
bool is_yaml(std::string_view json) {
  for (std::size_t at = 0; at + 1 < json.size(); ++at)
    if (json[at] == '\xc2' && static_cast<std::uint8_t>(json[at + 1]) < 0xa0) return false;
  for (const std::string_view other : {"\x7f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf"})
    if (json.find(other) != std::string_view::npos) return false;
  return true;
}

std::string read(std::string_view bytes) {
  const std::string scalar = as_scalar(bytes);
  Value value;
  try {
    value = parse_yaml(bytes, "fuzz.yaml");
  } catch (const Error&) {
    check_faults(bytes, nullptr);
    throw;
  }
  check_faults(bytes, &value);
  const std::string yaml = to_yaml(value), json = to_json(value);
  if (nodes_in(value) > kMostNodes) return concat(yaml, scalar);
  const Value from_yaml = reread([&] { return parse_yaml(yaml, "written.yaml"); });
  require(from_yaml == value, "its YAML is another value: " + yaml);
  require(to_yaml(from_yaml) == yaml, "its YAML is written in another way: " + yaml);
  require(!is_yaml(json) || reread([&] { return parse_yaml(json, "written.json"); }) == value,
          "its JSON is another value: " + json);
  require(reread([&] { return parse_json(json, "written.json"); }) == value,
          "its JSON as JSON is another value: " + json);
  require(digest(from_yaml) == digest(value), "equal values have two digests");
  return concat(yaml, scalar);
}

}  // namespace

const Target kTarget{.read = read,
                     .refusals = {ErrorKind::Experiment},
                     .most_memory = document_memory,
                     .rounds = 2500};

}  // namespace pipewright::fuzz
