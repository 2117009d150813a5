/// Byte-level byte-pair encoding, as of GPT-2 and RoBERTa (Radford et al., "Language Models are
/// Unsupervised Multitask Learners", 2019): any text has tokens, and they give back its bytes.
///
/// Text is cut into words with the blank before them, runs of digits, of other characters and of
/// white space, and English contractions; in each piece neighbouring tokens are merged, the pair
/// learnt first before the others, beginning with single bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "datasets/texts/pattern.h"

namespace pipewright {

class ByteBpe {
 public:
  /// Reads `encoder.json` (token: id) and `vocab.bpe` (a merge a line, after one line "#version").
  /// Throws Error{Data} at the file: missing, malformed, ids that are not 0, 1, 2, … each once, a
  /// byte without a token, a merge given twice or of unknown tokens.
  explicit ByteBpe(const std::filesystem::path& folder);

  /// Of valid UTF-8. Marks such as "<|endoftext|>" are text like any other.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The bytes of these tokens; they are UTF-8 if the tokens are a whole text's.
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
  std::vector<std::string> bytes_;                       // by token
  std::unordered_map<std::string, std::int32_t> known_;  // token by its bytes
  std::vector<std::int32_t> single_;                     // token by its only byte
  std::unordered_map<std::uint64_t, Merge> merges_;      // by (first << 32 | second)
};

}  // namespace pipewright
