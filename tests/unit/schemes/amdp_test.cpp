// SPDX-License-Identifier: Apache-2.0
// AMDP's replicas in both directions: where stages are, the order of the authors' program, the
// idle time, and how far forwards and backwards are apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/as_size.h"
#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "core/simulation/simulate.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright {
namespace {

PipelineShape amdp_shape(int stages, int microbatches, int minibatches = 1) {
  return {.stages = stages,
          .replicas = stages / 2,
          .microbatches = microbatches,
          .minibatches = minibatches};
}

std::string amdp_refusal(const PipelineShape& shape) {
  try {
    schedule_of("amdp", "{}", shape);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.message();
  }
  return {};
}

TEST(Amdp, PlacesReplicasInBothDirections) {
  const SchemeReading reading("amdp", "{}");
  EXPECT_EQ(reading.scheme->replica_placement(8, 4),
            (std::vector<std::vector<int>>{{0, 1, 2, 3, 4, 5, 6, 7},
                                           {3, 2, 1, 0, 7, 6, 5, 4},
                                           {4, 5, 6, 7, 0, 1, 2, 3},
                                           {7, 6, 5, 4, 3, 2, 1, 0}}));
  EXPECT_EQ(
      reading.scheme->replica_placement(4, 4),
      (std::vector<std::vector<int>>{{0, 1, 2, 3}, {3, 2, 1, 0}, {4, 5, 6, 7}, {7, 6, 5, 4}}));
}

TEST(Amdp, RefusesShapesThatItsReplicasDoNotFill) {
  EXPECT_EQ(amdp_refusal({.stages = 6, .replicas = 3}),
            "pipeline.stages is 6; amdp needs a multiple of 4, as each of its replicas begins four "
            "workers after another");
  EXPECT_EQ(amdp_refusal({.stages = 8, .replicas = 2}),
            "pipeline.replicas is 2; amdp needs half as many as stages, 4, or a multiple of that, "
            "as they share their workers");
  EXPECT_EQ(amdp_refusal({.stages = 4, .replicas = 2, .placement = {0, 1, 2, 3}}),
            "pipeline.placement is [0, 1, 2, 3]; amdp places its replicas itself, so leave it out");
}

/// A worker's order in the authors' program: of two micro-batches of each of R replicas,
/// micro-batch c + R·j is the j-th of replica c. They do all forwards and then all backwards, but
/// at the ends of a pipeline, where the first backward comes before the last forward. The last
/// backward of a worker waits until the next mini-batch has come: two forwards of it at the ends,
/// none elsewhere.
struct OfAuthors {
  std::vector<int> forwards, backwards;
};
const std::vector<OfAuthors> kFour = {{{0, 2, 1, 3}, {1, 3, 0, 2}},
                                      {{0, 1, 2, 3}, {1, 0, 3, 2}},
                                      {{1, 0, 3, 2}, {0, 1, 2, 3}},
                                      {{1, 3, 0, 2}, {0, 2, 1, 3}}};
const std::vector<OfAuthors> kEight = {{{0, 4, 1, 2, 5, 6, 3, 7}, {3, 7, 2, 1, 6, 5, 0, 4}},
                                       {{0, 1, 4, 5, 2, 3, 6, 7}, {3, 2, 7, 6, 1, 0, 5, 4}},
                                       {{1, 0, 5, 4, 3, 2, 7, 6}, {2, 3, 6, 7, 0, 1, 4, 5}},
                                       {{1, 5, 0, 3, 4, 7, 2, 6}, {2, 6, 3, 0, 7, 4, 1, 5}},
                                       {{2, 6, 3, 0, 7, 4, 1, 5}, {1, 5, 0, 3, 4, 7, 2, 6}},
                                       {{2, 3, 6, 7, 0, 1, 4, 5}, {1, 0, 5, 4, 3, 2, 7, 6}},
                                       {{3, 2, 7, 6, 1, 0, 5, 4}, {0, 1, 4, 5, 2, 3, 6, 7}},
                                       {{3, 7, 2, 1, 6, 5, 0, 4}, {0, 4, 1, 2, 5, 6, 3, 7}}};

/// "F0 F2 …", the mini-batch after a dot.
std::string authors_order(const OfAuthors& of, int worker, int minibatches) {
  std::string text;
  const auto add = [&](char kind, int microbatch, int minibatch) {
    text += concat(std::string(1, kind), microbatch, ".", minibatch, " ");
  };
  const bool end = worker % 4 == 0 || worker % 4 == 3;
  const std::size_t last = of.forwards.size() - 1;
  for (int m = 0; m < minibatches; ++m) {
    if (m > 0 && !end) add('B', of.backwards[last], m - 1);
    for (std::size_t i = 0; i <= last; ++i) {
      if (i == 2 && m > 0 && end) add('B', of.backwards[last], m - 1);
      if (i == last && end) add('B', of.backwards[0], m);
      add('F', of.forwards[i], m);
    }
    for (std::size_t i = end ? 1 : 0; i < last; ++i) add('B', of.backwards[i], m);
  }
  add('B', of.backwards[last], minibatches - 1);
  return text;
}

TEST(Amdp, HasTheOrderOfTheAuthorsProgram) {
  for (const auto* program : {&kFour, &kEight}) {
    const int stages = static_cast<int>(program->size());
    const Schedule schedule = schedule_of("amdp", "{}", amdp_shape(stages, 2, 5));
    for (int w = 0; w < stages; ++w) {
      std::string text;
      for (const Action& a : schedule.workers[as_size(w)])
        if (is_pass(a.kind))
          text += concat(a.kind == ActionKind::Forward ? "F" : "B",
                         a.replica + stages / 2 * a.microbatch, ".", a.minibatch, " ");
      EXPECT_EQ(text, authors_order((*program)[as_size(w)], w, 5)) << "worker " << w;
    }
  }
}

/// No worker waits between the first and the last mini-batch if all passes take as long, and one
/// unit of 3·N + 1 for each two micro-batches if backwards take twice as long.
TEST(Amdp, HardlyWaitsInTheSteadyState) {
  for (const int stages : {4, 8, 12})
    for (const int backward : {1, 2}) {
      const auto makespan = [&](int minibatches) {
        const std::vector<StageCost> costs(
            as_size(stages), {.forward = 1, .backward = static_cast<double>(backward)});
        return simulate(prove(schedule_of("amdp", "{}", amdp_shape(stages, 4, minibatches))), costs,
                        ideal_hardware(stages))
            .makespan;
      };
      EXPECT_EQ(makespan(9) - makespan(4), 5 * 2 * ((1 + backward) * stages + backward - 1))
          << stages << " stages";
    }
}

/// The most updates between a forward and its backward, of every stage.
std::vector<int> mismatches(const PipelineShape& shape) {
  const Schedule schedule = schedule_of("amdp", "{}", shape);
  const Versions versions = prove(schedule).versions;
  std::map<std::array<int, 4>, int> read;  // by the forward of stage, replica, mini-, micro-batch
  std::vector<int> most(as_size(shape.stages), 0);
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (std::size_t i = 0; i < schedule.workers[w].size(); ++i) {
      const Action& a = schedule.workers[w][i];
      const std::array<int, 4> pass{a.stage, a.replica, a.minibatch, a.microbatch};
      const int version = versions.workers[w][i].key.version;
      if (a.kind == ActionKind::Forward) read[pass] = version;
      if (a.kind != ActionKind::Backward) continue;
      EXPECT_EQ(version, a.minibatch);
      most[as_size(a.stage)] = std::max(most[as_size(a.stage)], version - read.at(pass));
    }
  return most;
}

/// The paper's bound is min(2, N − k) − 1 updates at stage k; it is met with even numbers of
/// micro-batches, and there the first stage alone is late. An odd number divides a pair.
TEST(Amdp, KeepsForwardAndBackwardWithinOneUpdate) {
  for (const int stages : {4, 8, 12})
    for (const int microbatches : {2, 4, 6}) {
      std::vector<int> expected(as_size(stages), 0);
      expected[0] = 1;
      EXPECT_EQ(mismatches(amdp_shape(stages, microbatches, 6)), expected);
    }
  const std::vector<int> single = mismatches(amdp_shape(4, 1, 6));
  EXPECT_EQ(single, (std::vector<int>{2, 1, 1, 0}));
}

}  // namespace
}  // namespace pipewright
