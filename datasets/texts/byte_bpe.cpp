// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/byte_bpe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"
#include "core/base/wording.h"
#include "datasets/texts/pair_merging.h"
#include "datasets/texts/text_file.h"

namespace pipewright {
namespace {

constexpr const char* kVocabularyOrigin =
    "part of GPT-2's and RoBERTa's byte-level BPE (encoder.json, vocab.bpe, dict.txt), which "
    "fairseq's examples/roberta publishes; give the folder that holds them";

constexpr std::size_t kLargestVocabulary = std::size_t{16} << 20;  // GPT-2's has 1 MB
constexpr std::size_t kShown = 30;                                 // characters of a wrong token

/// Unicode's White_Space. PCRE2's \s also has U+180E, which is no white space since Unicode 6.3.
#define SPACES                                                                                     \
  "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}" \
  "\\x{3000}"
constexpr const char* kPieces = "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES
                                "\\p{L}\\p{N}]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";
#undef SPACES

/// An entry of encoder.json.
struct TokenId {
  std::string token;
  std::uint64_t id;
};

/// Collects the entries of encoder.json from the parser's events, so that no other file of JSON,
/// such as one of many brackets, takes memory or stack. An event that returns false ends the
/// reading.
class TokenReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<TokenId>& tokens() { return tokens_; }
  const std::string& fault() const { return fault_; }

  bool null() override { return refuse_value("null"); }
  bool boolean(bool flag) override { return refuse_value(flag ? "true" : "false"); }
  bool number_integer(number_integer_t number) override {
    return refuse_value(std::to_string(number));
  }
  bool number_float(number_float_t, const string_t& spelled) override {
    return refuse_value(printable(spelled, kShown));
  }
  bool string(string_t& text) override {
    return refuse_value(concat("'", printable(text, kShown), "'"));
  }
  bool binary(binary_t&) override { return refuse_value("bytes"); }
  bool start_array(std::size_t) override { return refuse_value("a list"); }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    return !std::exchange(open_, true) || refuse_value("a mapping");
  }
  bool end_object() override { return true; }
  bool key(string_t& token) override {
    tokens_.push_back({std::move(token), 0});
    return true;
  }
  bool number_unsigned(number_unsigned_t id) override {
    if (!open_) return refuse_value("");
    tokens_.back().id = id;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(kNoObject);
  }

 private:
  static constexpr const char* kNoObject = "is not a JSON object of tokens and their ids";

  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool refuse_value(const std::string& what) {
    if (!open_) return refuse(kNoObject);
    return refuse(concat("token '", printable(tokens_.back().token, kShown), "' has id ", what,
                         ", must be an integer from 0"));
  }

  std::vector<TokenId> tokens_;
  bool open_ = false;
  std::string fault_;
};

std::vector<TokenId> read_token_ids(std::string_view text, const std::filesystem::path& path) {
  TokenReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) throw data_error(path, reader.fault());
  return std::move(reader.tokens());
}

/// Maps the characters that stand for bytes in the files to those bytes: a byte that is printable
/// in Latin-1 stands as that character, the others as U+0100, U+0101, ….
std::unordered_map<std::string_view, char> bytes_by_character() {
  static const std::string spelled = [] {
    std::string all;
    unsigned unused = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      const unsigned code = printable ? byte : unused++;
      if (code >= 0x80) all += static_cast<char>(0xC0 | code >> 6);
      all += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3F) : code);
    }
    return all;
  }();
  std::unordered_map<std::string_view, char> bytes;
  for (const std::string_view character : characters(spelled))
    bytes.emplace(character, static_cast<char>(bytes.size()));
  return bytes;
}

/// Converts a token as written in the files to its bytes.
std::string unspelled(std::string_view token, const std::filesystem::path& path) {
  static const auto bytes = bytes_by_character();
  std::string out;
  for (const std::string_view character : characters(token)) {
    const auto found = bytes.find(character);
    if (found == bytes.end())
      throw data_error(path, "token '", printable(token, kShown), "' has '", character,
                       "', which stands for no byte");
    out += found->second;
  }
  return out;
}

std::uint64_t key(std::int32_t first, std::int32_t second) {
  return std::uint64_t{static_cast<std::uint32_t>(first)} << 32 |
         static_cast<std::uint32_t>(second);
}

}  // namespace

ByteBpe::ByteBpe(const std::filesystem::path& folder) : pieces_(kPieces) {
  read_tokens(folder / "encoder.json");
  read_merges(folder / "vocab.bpe");
}

void ByteBpe::read_tokens(const std::filesystem::path& path) {
  const auto fail = [&path](const std::string& what) { throw data_error(path, what); };
  const std::string text = read_text(path, kVocabularyOrigin);
  if (text.size() > kLargestVocabulary)
    fail(concat("has ", text.size(), " bytes; at most ", kLargestVocabulary, " are read"));
  const std::vector<TokenId> tokens = read_token_ids(text, path);
  const std::size_t count = tokens.size();
  if (count > std::numeric_limits<std::int32_t>::max()) fail("has too many tokens");
  bytes_.resize(count);
  for (const auto& [token, id] : tokens) {
    if (id >= count)
      fail(concat("token '", printable(token, kShown), "' has id ", id,
                  ", must be an integer from 0 to ", count - 1));
    std::string bytes = unspelled(token, path);
    if (bytes.empty()) fail("has an empty token");
    if (!known_.emplace(bytes, static_cast<std::int32_t>(id)).second)
      fail(concat("has the token '", printable(token, kShown), "' twice"));
    std::string& place = bytes_[id];
    if (!place.empty()) fail(concat("id ", id, " is given to two tokens"));
    place = std::move(bytes);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = known_.find(std::string(1, static_cast<char>(byte)));
    if (found == known_.end()) fail(concat("has no token for the byte ", byte));
    single_.push_back(found->second);
  }
}

void ByteBpe::read_merges(const std::filesystem::path& path) {
  const std::string text = read_text(path, kVocabularyOrigin);
  const std::vector<std::string_view> lines = lines_of(text);
  if (!lines[0].starts_with("#version")) throw_bad_line(path, 1, "must begin with '#version'");
  const auto token = [&](const std::string& bytes, std::size_t line) {
    const auto found = known_.find(bytes);
    if (found == known_.end())
      throw_bad_line(path, line, concat("merges into or from a token that is not in encoder.json"));
    return found->second;
  };
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> pair = words_of(lines[i]);
    if (pair.empty() && i + 1 == lines.size()) break;
    if (pair.size() != 2)
      throw_bad_line(path, i + 1,
                     concat("has ", counted(pair.size(), "token"), ", but must have 2"));
    const std::string first = unspelled(pair[0], path), second = unspelled(pair[1], path);
    const Merge merge{static_cast<std::int32_t>(i), token(first + second, i + 1)};
    if (!merges_.emplace(key(token(first, i + 1), token(second, i + 1)), merge).second)
      throw_bad_line(path, i + 1, "repeats an earlier merge");
  }
}

const ByteBpe::Merge* ByteBpe::merge_of(std::int32_t first, std::int32_t second) const {
  const auto found = merges_.find(key(first, second));
  return found == merges_.end() ? nullptr : &found->second;
}

void ByteBpe::append_piece(std::string_view piece, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> tokens;
  for (const char byte : piece) tokens.push_back(single_[static_cast<unsigned char>(byte)]);
  tokens = merge_pairs(
      std::move(tokens),
      [this](std::int32_t first, std::int32_t second) {
        const Merge* merge = merge_of(first, second);
        return merge == nullptr ? kNoMerge : merge->rank;
      },
      [this](std::int32_t first, std::int32_t second) { return merge_of(first, second)->token; });
  out.insert(out.end(), tokens.begin(), tokens.end());
}

std::vector<std::int32_t> ByteBpe::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  struct Place {
    std::size_t begin, end;
  };
  std::unordered_map<std::string_view, Place> done;  // places in `tokens` of pieces already encoded
  pieces_.for_each(text, [&](std::string_view piece) {
    const auto [found, is_new] = done.try_emplace(piece, Place{tokens.size(), 0});
    Place& place = found->second;
    if (is_new) {
      append_piece(piece, tokens);
      place.end = tokens.size();
    } else {
      for (std::size_t i = place.begin; i < place.end; ++i) tokens.push_back(tokens[i]);
    }
  });
  return tokens;
}

std::string ByteBpe::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    PIPEWRIGHT_CHECK(token >= 0 && token < size(), "token ", token);
    text += bytes_[static_cast<std::size_t>(token)];
  }
  return text;
}

}  // namespace pipewright
