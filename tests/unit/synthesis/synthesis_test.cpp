// SPDX-License-Identifier: Apache-2.0
// The optima that an exact solver has proved, found again.
#include "core/synthesis/synthesis.h"

#include <gtest/gtest.h>

#include "tests/unit/synthesis/search_cases.h"

namespace pipewright {
namespace {

/// A pipeline of equal stages, and the shortest time of its longest worker from first to last pass
/// that OR-tools' CP-SAT has proved; with 8 workers and 32 micro-batches that of the formulas.
/// Where F = B = W = 1 and as many micro-batches as workers may be held this is ZB-H1's formula,
/// and with 2p − 1 of them ZB-H2's.
struct Optimum {
  int stages, microbatches, live;
  double seconds;
  double forward = 1, input = 1, weight = 1;
};

constexpr Optimum kProvedHere[] = {{4, 8, 4, 27},  {4, 8, 6, 25},   {4, 8, 7, 24},
                                   {4, 12, 4, 39}, {4, 12, 6, 37},  {4, 12, 7, 36},
                                   {8, 16, 8, 55}, {8, 32, 8, 103}, {8, 32, 15, 96},
                                   {3, 4, 3, 14},  {4, 6, 4, 21},   {4, 8, 4, 282, 10, 12, 8}};

TEST(Synthesis, FindsWhatAnExactSolverHasProvedAndProvesItToo) {
  for (const Optimum& each : kProvedHere) {
    const OrderTask task = equal_task(each.stages, each.microbatches, each.live, each.forward,
                                      each.input, each.weight);
    const Synthesis found = synthesize(task, {});
    EXPECT_EQ(found.pace.seconds, each.seconds) << each.stages << " " << each.live;
    EXPECT_EQ(found.gap(), 0) << each.stages << " " << each.live;
    EXPECT_TRUE(fits(task, found.orders));
  }
}

TEST(Synthesis, FindsTheOptimaOfLittleRoom) {
  for (const Optimum& each : {Optimum{4, 8, 2, 41}, Optimum{8, 16, 4, 79}}) {
    const Synthesis found = synthesize(equal_task(each.stages, each.microbatches, each.live), {},
                                       {.tries = 200000, .exact_steps = 200000});
    EXPECT_LE(found.pace.seconds, each.seconds);
    EXPECT_LE(found.gap(), 0.12);
  }
}

TEST(Synthesis, IsTheSameEachTimeAndDependsOnItsSeed) {
  const OrderTask task = equal_task(4, 8, 2);
  const SynthesisSettings settings{.tries = 3000, .exact_steps = 3000, .seed = 7};
  EXPECT_EQ(synthesize(task, {}, settings).orders, synthesize(task, {}, settings).orders);
}

TEST(Synthesis, StopsWhenItIsTold) {
  int asked = 0;
  const Synthesis found =
      synthesize(equal_task(4, 8, 2), {}, {.tries = 1 << 30, .stop = [&] { return ++asked > 20; }});
  EXPECT_TRUE(fits(equal_task(4, 8, 2), found.orders));
  EXPECT_LE(asked, 40);
}

}  // namespace
}  // namespace pipewright
