// SPDX-License-Identifier: Apache-2.0
#include "tests/replay/line.h"

#include <map>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright::replay {
namespace {

/// Case → what came of it.
using Lines = std::map<std::string, std::string>;

Lines read_lines(std::string_view text) {
  Lines lines;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t arrow = line.find(kArrow);
    if (arrow == std::string::npos)
      throw Error(ErrorKind::Data, concat("'", line, "' is no line of a replay; expected a case, '",
                                          kArrow, "' and what came of it"));
    lines[line.substr(0, arrow)] = line.substr(arrow + kArrow.size());
  }
  return lines;
}

/// "other schedule, versions", with what a reader can see without the digests.
std::string change(const std::string& before, const std::string& now) {
  const std::vector<std::string> were = split(before, ' '), are = split(now, ' ');
  const auto digests = [](const std::vector<std::string>& words) {
    return words.size() == kDigested.size() + 1 && is_digit(words[0][0]);
  };
  if (!digests(were) || !digests(are)) return concat("was ", before, "\n  is  ", now);
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < kDigested.size(); ++i)
    if (were[i + 1] != are[i + 1]) changed.push_back(kDigested[i]);
  const bool as_many = were[0] == are[0];
  return concat("other ", join(changed, ", "),
                as_many ? "" : concat("; ", are[0], " actions instead of ", were[0]));
}

}  // namespace

Comparison compare(std::string_view baseline, std::string_view replay) {
  const Lines before = read_lines(baseline), now = read_lines(replay);
  Comparison result;
  for (const auto& [name, expected] : before) {
    const auto found = now.find(name);
    const std::string outcome = found == now.end() ? std::string(kGone) : found->second;
    if (outcome == expected)
      ++result.same;
    else
      result.differences.push_back(concat(name, "\n  ", change(expected, outcome)));
  }
  for (const auto& [name, outcome] : now) result.fresh += before.contains(name) ? 0 : 1;
  return result;
}

}  // namespace pipewright::replay
