// SPDX-License-Identifier: Apache-2.0
/// The lines of a replay, and in what those of two replays differ. A line is such as
///   gpipe, 2 stages, 1 micro-batch, 5 mini-batches => 30 0d1a83f2 …
///   data_parallel, 2 stages, 1 micro-batch, 5 mini-batches => refused: pipeline.stages is 2; …
/// with the number of actions and a digest of each of kDigested.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::replay {

inline constexpr std::string_view kArrow = " => ";  ///< between a case and what came of it
inline constexpr std::string_view kRefused = "refused: ";
inline constexpr std::string_view kGone = "gone";
inline constexpr std::array<const char*, 5> kDigested{"schedule", "order", "versions", "times",
                                                      "memory"};

/// What two replays have in common and what not. Lines of cases that only the later replay has are
/// no difference: they are of schemes and options that are new.
struct Comparison {
  std::size_t same = 0;
  std::size_t fresh = 0;                 ///< lines of cases that the baseline does not have
  std::vector<std::string> differences;  ///< a few printable lines for each case that differs
};

/// Compares two replays, each a line per case. Of two lines for a case the later one counts; "gone"
/// behind the arrow says that the case is to be missing. Empty lines and those that begin with #
/// say nothing. Throws Error{Data} for a line without an arrow.
Comparison compare(std::string_view baseline, std::string_view replay);

}  // namespace pipewright::replay
