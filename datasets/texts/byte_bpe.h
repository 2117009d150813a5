// SPDX-License-Identifier: Apache-2.0
/// Byte-level byte-pair encoding as in GPT-2 and RoBERTa (Radford et al., "Language Models are
/// Unsupervised Multitask Learners", 2019). It encodes any text without loss.
///
/// Text is cut into pieces: words with the blank before them, runs of digits, of other characters
/// and of white space, and English contractions. A piece starts as single bytes; then adjacent
/// tokens are merged, the pair that was learnt first before the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor_files/pattern.h"

namespace pipewright {

class ByteBpe {
 public:
  /// Reads `encoder.json` (token: id) and `vocab.bpe` (a line "#version", then one merge per line).
  /// Throws Error{Data} at the file if it is missing or malformed, the ids are not 0, 1, 2, … each
  /// once, a byte has no token, or a merge occurs twice or has unknown tokens.
  explicit ByteBpe(const std::filesystem::path& folder);

  /// Encodes valid UTF-8. Marks such as "<|endoftext|>" are ordinary text.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Decodes tokens to bytes, which are UTF-8 if the tokens are those of a whole text.
  std::string decode(std::span<const std::int32_t> tokens) const;
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t token;
  };

  void read_tokens(const std::filesystem::path& path);
  void read_merges(const std::filesystem::path& path);
  void append_piece(std::string_view piece, std::vector<std::int32_t>& out) const;
  const Merge* merge_of(std::int32_t first, std::int32_t second) const;

  Pattern pieces_;
  std::vector<std::string> bytes_;                       // bytes of each token
  std::unordered_map<std::string, std::int32_t> known_;  // bytes → token
  std::vector<std::int32_t> single_;                     // byte → token of that byte alone
  std::unordered_map<std::uint64_t, Merge> merges_;      // (first << 32 | second) → merge
};

}  // namespace pipewright
