/// Small things done with text: concatenation, numbers that round-trip, near misses of names.
#pragma once

#include <concepts>
#include <cstdint>
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

/// The candidate nearest to `name` in slips of the finger (a letter too many, too few, another one,
/// or two swapped), or "" when none is near enough to be meant.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// "; did you mean 'x'?" or, with nothing near, "; known: a, b, c" ("" without candidates).
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// The text as one word of a shell's command line: as it is where that is safe, else in single
/// quotes.
std::string shell_quoted(std::string_view text);

/// "1.5 s", "2 min 03 s", "1 h 04 min"
std::string duration_text(double seconds);
/// "14.7 M", "1.2 k" for counts; "58.7 MiB" for bytes.
std::string count_text(double count);
std::string bytes_text(double bytes);

}  // namespace pipewright
