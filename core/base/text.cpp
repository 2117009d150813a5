// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/printable.h"
#include "core/base/wording.h"

namespace pipewright {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

namespace {

/// The text as $'…', in which quotes, backslashes and all bytes but printable ASCII are octal
/// escapes.
std::string ansi_c_quoted(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::array<char, 8> octal{};
    std::snprintf(octal.data(), octal.size(), "\\%03o", byte);
    const bool plain = byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\';
    out += plain ? std::string(1, c) : std::string(octal.data());
  }
  return out + "'";
}

}  // namespace

std::string shell_quoted(std::string_view text) {
  const bool safe = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_./=:,+@", c) != nullptr;
  });
  if (safe) return std::string(text);
  if (printable(text) != text) return ansi_c_quoted(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

namespace {

/// How many letters are inserted, removed, replaced or swapped with their neighbour (optimal string
/// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// The words of a name in alphabetical order: "limit", "train" of "train_limit".
std::vector<std::string> sorted_words(std::string_view name) {
  std::vector<std::string> words = split(name, '_');
  std::ranges::sort(words);
  return words;
}

}  // namespace

bool matches_glob(std::string_view text, std::string_view glob) {
  std::size_t t = 0, g = 0, star = glob.size(), behind = 0;  // the last *, and what it ends before
  while (t < text.size())
    if (g < glob.size() && glob[g] == '*')
      star = g++, behind = t;
    else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t]))
      ++g, ++t;
    else if (star < glob.size())
      g = star + 1, t = ++behind;
    else
      return false;
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  const std::vector<std::string> words = sorted_words(name);
  for (const std::string& candidate : candidates)
    if (words.size() > 1 && sorted_words(candidate) == words) return candidate;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  if (candidates.empty()) return {};
  const std::string meant = did_you_mean(name, candidates);
  return meant.empty() ? "; known: " + join(candidates, ", ") : meant;
}

namespace {

std::string printed(const char* format, double a, double b = 0) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, a, b);
  return buffer.data();
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 10) return printed("%.1f s", seconds);
  if (seconds < 60) return printed("%.0f s", seconds);
  if (seconds < 3600)
    return printed("%.0f min %02.0f s", std::floor(seconds / 60),
                   std::floor(std::fmod(seconds, 60)));
  return printed("%.0f h %02.0f min", std::floor(seconds / 3600),
                 std::floor(std::fmod(seconds, 3600) / 60));
}

std::string count_text(double count) {
  if (count < 1e3) return printed("%.0f", count);
  if (count < 1e6) return printed("%.1f k", count / 1e3);
  if (count < 1e9) return printed("%.1f M", count / 1e6);
  return printed("%.2f G", count / 1e9);
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return printed("%.0f B", bytes);
  if (bytes < 1024. * 1024) return printed("%.1f KiB", bytes / 1024);
  if (bytes < 1024. * 1024 * 1024) return printed("%.1f MiB", bytes / (1024. * 1024));
  return printed("%.2f GiB", bytes / (1024. * 1024 * 1024));
}

std::string time_text(double seconds) {
  if (seconds < 0.99995e-3) return printed("%.1f µs", seconds * 1e6);
  if (seconds < 0.999995) return printed("%.2f ms", seconds * 1e3);
  return printed("%.2f s", seconds);
}

std::string shape_text(std::span<const std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += concat(text.empty() ? "" : "×", size);
  return text.empty() ? "a scalar" : text;
}

std::string list_text(std::span<const std::int64_t> numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) text += concat(text.size() > 1 ? ", " : "", number);
  return text + "]";
}

std::string list_text(std::span<const int> numbers) {
  return list_text(std::vector<std::int64_t>(numbers.begin(), numbers.end()));
}

std::string short_key(std::string_view key) {
  std::size_t at = key.rfind('.');
  if (at == std::string_view::npos) return std::string(key);
  const std::size_t before = key.rfind('.', at - 1);
  if (before != std::string_view::npos && at > before + 1 &&
      std::ranges::all_of(key.substr(before + 1, at - before - 1), is_digit))
    at = key.rfind('.', before - 1);
  return std::string(key.substr(at == std::string_view::npos ? 0 : at + 1));
}

}  // namespace pipewright
