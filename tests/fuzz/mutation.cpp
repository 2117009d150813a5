// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace pipewright::fuzz {
namespace {

/// Numbers at which sizes, counts and signs go wrong.
constexpr std::array<std::uint64_t, 20> kOdd{0,
                                             1,
                                             2,
                                             7,
                                             8,
                                             16,
                                             127,
                                             128,
                                             255,
                                             256,
                                             65535,
                                             65536,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             std::uint64_t{1} << 32,
                                             std::uint64_t{1} << 38,
                                             std::uint64_t{1} << 53,
                                             0x7fffffffffffffff,
                                             0xffffffffffffffff};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

std::string Mutation::changed(std::string bytes, const std::string& other) {
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(bytes, other);
  if (bytes.size() > most_bytes_) bytes.resize(most_bytes_);
  return bytes;
}

/// Half of the time near the beginning, where headers are.
std::size_t Mutation::place(const std::string& bytes) {
  return below(below(2) == 0 ? std::min<std::size_t>(bytes.size(), 64) : bytes.size());
}

/// Instead of what stands there, or before it.
void Mutation::put(std::string& bytes, std::size_t at, std::string_view text) {
  if (below(2) == 0)
    bytes.insert(at, text);
  else
    bytes.replace(at, std::min(text.size(), bytes.size() - at), text);
}

/// A number of 1, 2, 4 or 8 bytes, in either order.
void Mutation::put_number(std::string& bytes, std::size_t at) {
  const std::size_t width = std::size_t{1} << below(4);
  std::uint64_t number = kOdd[below(kOdd.size())];
  if (below(4) == 0) number = bytes.size() - std::min<std::size_t>(bytes.size(), below(9));
  std::string text;
  for (std::size_t i = 0; i < width; ++i) text += static_cast<char>(number >> (8 * i));
  if (below(2) == 0) std::ranges::reverse(text);
  bytes.replace(at, std::min(width, bytes.size() - at), text);
}

/// Another decimal number instead of the next one.
void Mutation::change_digits(std::string& bytes, std::size_t at) {
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto first = std::find_if(from, bytes.end(), is_digit);
  const auto last = std::find_if_not(first, bytes.end(), is_digit);
  std::string text = std::to_string(kOdd[below(kOdd.size())]);
  if (below(4) == 0) text.insert(0, "-");
  if (below(4) == 0) text += "e" + std::to_string(below(400));
  bytes.replace(first, last, text);
}

void Mutation::change(std::string& bytes, const std::string& other) {
  const std::size_t at = place(bytes), length = 1 + below(below(4) == 0 ? 200 : 16);
  switch (below(11)) {
    case 0:
      if (!bytes.empty()) bytes[at] = static_cast<char>(random_());
      break;
    case 1:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      break;
    case 2: bytes.resize(bytes.size() - std::min(bytes.size(), below(2) == 0 ? 1 : at)); break;
    case 3: bytes.append(below(40), static_cast<char>(random_())); break;
    case 4: put_number(bytes, at); break;
    case 5: bytes.erase(at, length); break;
    case 6: put(bytes, place(bytes), std::string(bytes.substr(at, length))); break;
    case 7: put(bytes, at, std::string_view(other).substr(place(other), length)); break;
    case 8: change_digits(bytes, at); break;
    case 9: {  // a line, with its end, to another place
      const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
      const std::size_t begin = bytes.rfind('\n', at == 0 ? 0 : at - 1);
      const std::size_t first = begin == std::string::npos ? 0 : begin + 1;
      const std::string line = bytes.substr(first, end + 1 - std::min(first, end));
      const std::size_t to = bytes.find('\n', place(bytes));
      bytes.insert(to == std::string::npos ? 0 : to + 1, line);
      break;
    }
    default:
      if (!words_.empty()) put(bytes, at, words_[below(words_.size())]);
  }
}

std::vector<std::string> read_dictionary(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::string> words;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (begin >= end) throw std::runtime_error(path.string() + ": no word in quotes: " + line);
    std::string& word = words.emplace_back();
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[++i] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        word += line[i];
      }
    }
  }
  return words;
}

}  // namespace pipewright::fuzz
