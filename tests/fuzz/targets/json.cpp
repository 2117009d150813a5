// SPDX-License-Identifier: Apache-2.0
// The reader of our own JSON files (run.json, point.json). What it takes, written again, is read as
// an equal value.
#include "core/config/json.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string read(std::string_view bytes) {
  const Value value = parse_json(bytes, "fuzz.json");
  const std::string json = to_json(value);
  const Value again = reread([&] { return parse_json(json, "written.json"); });
  require(again == value, "what is written is another value: " + json);
  require(to_json(again) == json, "what is written is written in another way: " + json);
  require(digest(again) == digest(value), "equal values have two digests");
  return json;
}

std::size_t most_memory(std::string_view bytes) {
  return (1 << 20) + 4096 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .rounds = 12'000};

}  // namespace pipewright::fuzz
