// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/graphs/graph_rounds.h"

#include <gtest/gtest.h>

#include <functional>

namespace pipewright::test {
namespace {

using Addresses = GraphRounds::Addresses;

/// P, o, R and L: how rounds are performed whose addresses are at(round), `count` in all; o stands
/// for a pooled one.
std::string kinds_of(int count, const std::function<Addresses(int round)>& at, int odd = -1) {
  GraphRounds rounds;
  std::string kinds;
  for (int round = 0; round < count; ++round) {
    const int left = round <= odd ? odd - round : count - round;
    kinds += "PoRL"[static_cast<std::size_t>(rounds.begin(left, at(round)))];
  }
  EXPECT_EQ(rounds.begin(0, {}), RoundKind::Plain);
  return kinds + rounds.refusal();
}

TEST(GraphRounds, AreLaunchedOnceAddressesRepeat) {
  EXPECT_EQ(kinds_of(9, [](int) { return Addresses{1, 2}; }), "ooRLLLLLL");
}

TEST(GraphRounds, AreRecordedForAWholePeriod) {
  const auto ring = [](int round) { return Addresses{static_cast<std::uintptr_t>(round % 3)}; };
  EXPECT_EQ(kinds_of(14, ring), "ooooRRRLLLLLLP");
}

TEST(GraphRounds, WaitUntilAsMuchIsAliveAsWillBe) {
  const auto filling = [](int round) {
    return Addresses(static_cast<std::size_t>(std::min(round, 4)), 7);
  };
  EXPECT_EQ(kinds_of(10, filling), "ooooooRLLL");
}

TEST(GraphRounds, TellPeriodsThatBeginAlikeApart) {
  // 1 1 2 1 1 2 …: two equal rounds in a row are no period of one.
  const auto at = [](int round) {
    return Addresses{static_cast<std::uintptr_t>(round % 3 == 2 ? 2 : 1)};
  };
  EXPECT_EQ(kinds_of(13, at), "ooooRRRLLLLLL");
}

TEST(GraphRounds, ArePlainAtAnOddMiniBatchAndBeginAnewBehindIt) {
  EXPECT_EQ(kinds_of(
                12, [](int) { return Addresses{1}; }, 6),
            "ooRLLLPooRLL");
}

TEST(GraphRounds, AreNotRecordedWhereNoneCouldBeLaunched) {
  EXPECT_EQ(kinds_of(3, [](int) { return Addresses{1}; }), "ooo");
}

TEST(GraphRounds, AreRecordedAgainWhereARecordingMovedWhatIsAlive) {
  const auto moved_once = [](int round) { return Addresses{round < 3 ? 1u : 2u}; };
  EXPECT_EQ(kinds_of(9, moved_once), "ooRRLLLLL");
}

TEST(GraphRounds, SayWhyTheyAreGivenUp) {
  const auto never = [](int round) { return Addresses{static_cast<std::uintptr_t>(round)}; };
  EXPECT_EQ(kinds_of(70, never).substr(63, 20), "PPPPPPPwhat is alive");
  const auto moved_by_each = [](int round) {
    return Addresses{static_cast<std::uintptr_t>(round < 3 ? 0 : round)};
  };
  EXPECT_NE(kinds_of(60, moved_by_each).find("after each of 16 recordings"), std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
