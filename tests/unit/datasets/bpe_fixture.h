// SPDX-License-Identifier: Apache-2.0
/// A byte-level BPE of three merges, for tests.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright::fixtures {

/// Byte b is token b; then "lo" 256, "low" 257 and " low" 258. In dict.txt token 258 comes first,
/// 0 last, then a filler word.
inline void put_byte_bpe(const TemporaryFolder& folder) {
  nlohmann::json tokens;
  std::vector<std::string> spelled;
  unsigned unused = 0x100;
  const auto utf8 = [](unsigned code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | code % 64)};
  };
  for (unsigned byte = 0; byte < 256; ++byte)
    spelled.push_back(utf8(
        byte <= 32 || byte == 127 || (byte > 127 && byte < 161) || byte == 173 ? unused++ : byte));
  for (const char* merged : {"lo", "low", "\u0120low"}) spelled.emplace_back(merged);
  std::string dict;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    tokens[spelled[i]] = i;
    dict += std::to_string(spelled.size() - 1 - i) + " 7\n";
  }
  put(folder / "encoder.json", tokens.dump());
  put(folder / "vocab.bpe", "#version: 0.2\nl o\nlo w\n\u0120 low\n");
  put(folder / "dict.txt", dict + "madeupword0000 0\n");
}

}  // namespace pipewright::fixtures
