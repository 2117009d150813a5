// SPDX-License-Identifier: Apache-2.0
/// Changes of inputs as a fuzzer without coverage makes them: bits, numbers, lengths, lines, parts
/// of other inputs and words of the format.
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace pipewright::fuzz {

class Mutation {
 public:
  /// Equal seeds give equal changes. `words`: what the format is made of.
  Mutation(std::uint64_t seed, std::vector<std::string> words, std::size_t most_bytes)
      : random_(seed), words_(std::move(words)), most_bytes_(most_bytes) {}

  /// One to four changes of `bytes`, some with parts of `other`.
  std::string changed(std::string bytes, const std::string& other);
  /// A number below n, or 0 where n is 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  void change(std::string& bytes, const std::string& other);
  std::size_t place(const std::string& bytes);
  void put_number(std::string& bytes, std::size_t at);
  void change_digits(std::string& bytes, std::size_t at);
  void put(std::string& bytes, std::size_t at, std::string_view text);

  std::mt19937_64 random_;
  std::vector<std::string> words_;
  std::size_t most_bytes_;
};

/// The words of a dictionary in libFuzzer's format: lines name="text", where the name may be left
/// out and the text has \\, \" and \xAB. Throws std::runtime_error for another line.
std::vector<std::string> read_dictionary(const std::filesystem::path& path);

}  // namespace pipewright::fuzz
