// SPDX-License-Identifier: Apache-2.0
/// Small things done with text: concatenation, numbers that round-trip, near misses of names.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Shortest decimal text that reads back as the same number; "nan", "inf", "-inf" otherwise.
std::string number_text(double value);

namespace detail {
inline void append(std::string& out, std::string_view part) {
  out += part;
}
inline void append(std::string& out, char part) {
  out += part;
}
template <std::same_as<bool> T>
void append(std::string& out, T part) {
  out += part ? "true" : "false";
}
template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) void append(std::string& out, T part) {
  out += std::to_string(part);
}
template <std::floating_point T>
void append(std::string& out, T part) {
  out += number_text(static_cast<double>(part));
}
}  // namespace detail

/// concat("stage ", 2, ": ", 0.5) == "stage 2: 0.5"
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

/// The candidate of the same words in another order (limit_train for train_limit), or the one with
/// the smallest edit distance to `name` (a letter too many, too few, another one, or two swapped
/// count one each); "" when even that exceeds a third of the name's length (at least 1).
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// Whether the whole text is as the glob: * stands for any characters, none included, ? for one.
bool matches_glob(std::string_view text, std::string_view glob);

/// "; did you mean 'x'?" or, with nothing near, "; known: a, b, c" ("" without candidates).
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// The text as one word of a shell's command line: unchanged where that is safe, else in single
/// quotes, or as $'…' where it holds characters that cannot be printed.
std::string shell_quoted(std::string_view text);

/// The last word of a dotted key, "lr" of optimizer.lr; of an option within a list the list and
/// the place in it, too, "groups.0.lr" of optimizer.groups.0.lr, so that it is told from
/// optimizer.lr.
std::string short_key(std::string_view key);

/// Whether `c` is one of 0 to 9, in any locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "1.5 s", "2 min 03 s", "1 h 04 min"
std::string duration_text(double seconds);
inline constexpr double kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;
/// NaN, which stands for a number that was not measured or is not defined.
inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// "2×8×8"; "a scalar" for an empty shape.
std::string shape_text(std::span<const std::int64_t> sizes);
/// "[1, 2, 3]"
std::string list_text(std::span<const std::int64_t> numbers);
std::string list_text(std::span<const int> numbers);

/// "14.7 M", "1.2 k" for counts; "58.7 MiB" for bytes.
std::string count_text(double count);
std::string bytes_text(double bytes);
std::string bytes_text(std::integral auto bytes) {
  return bytes_text(static_cast<double>(bytes));
}
/// "12.30 ms": µs below 1 ms, ms below 1 s, else s.
std::string time_text(double seconds);

}  // namespace pipewright
