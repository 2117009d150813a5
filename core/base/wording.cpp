// SPDX-License-Identifier: Apache-2.0
#include "core/base/wording.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

/// "1,000,000" for "1000000"; numbers of up to four digits stay as they are.
std::string with_groups(std::string digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  if (digits.size() - first < 5) return digits;
  for (std::size_t at = digits.size() - 3; at > first; at -= 3) {
    digits.insert(at, 1, ',');
    if (at < first + 3) break;
  }
  return digits;
}

std::string plural(std::string_view noun) {
  for (const std::string_view end : {"s", "x", "tch", "sh"})
    if (noun.ends_with(end)) return concat(noun, "es");
  return concat(noun, "s");
}

/// The candidates that share the longest beginning with the name, at least two thirds of it and two
/// characters.
std::vector<std::string> of_same_beginning(std::string_view name,
                                           std::span<const std::string> candidates) {
  std::size_t longest = std::max<std::size_t>(2, (2 * name.size() + 2) / 3);
  std::vector<std::string> found;
  for (const std::string& candidate : candidates) {
    const auto shared =
        static_cast<std::size_t>(std::ranges::mismatch(name, candidate).in1 - name.begin());
    if (shared > longest) found.clear();
    if (shared >= longest) found.push_back(candidate);
    longest = std::max(longest, shared);
  }
  return found;
}

}  // namespace

std::string grouped_text(double number) {
  constexpr double kMost = 1e16;  // of larger ones a double does not know every digit
  if (std::floor(number) != number || std::abs(number) >= kMost) return number_text(number);
  return with_groups(std::to_string(static_cast<std::int64_t>(number)));
}

std::string counted_text(std::int64_t count, std::string_view noun) {
  return concat(with_groups(std::to_string(count)), " ", count == 1 ? noun : plural(noun));
}

std::string listed(std::span<const std::string> names) {
  if (names.size() == 1) return names.front();
  return concat(join(names.first(names.size() - 1), ", "), " and ", names.back());
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kMost = 3;
  if (const std::string near = nearest(name, candidates); !near.empty())
    return concat("; did you mean '", near, "'?");
  const std::vector<std::string> found = of_same_beginning(name, candidates);
  if (found.empty() || found.size() > kMost) return {};
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i)
    text += concat(i == 0 ? "" : i + 1 == found.size() ? " or " : ", ", "'", found[i], "'");
  return concat("; did you mean ", text, "?");
}

std::string plugin_hint(std::string_view name, std::span<const std::string> known) {
  return did_you_mean(name, known).empty() ? "; one of a plugin needs --plugin FILE"
                                           : std::string();
}

}  // namespace pipewright
