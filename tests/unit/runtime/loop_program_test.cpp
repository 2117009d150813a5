// SPDX-License-Identifier: Apache-2.0
// A program with a loop is the program of the whole schedule: the same instructions one after the
// other, and the same bits.
#include <gtest/gtest.h>

#include "core/base/as_size.h"
#include "core/runtime/cursor.h"
#include "core/runtime/executor.h"
#include "core/schedule/builders.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/offload.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/tensors/torch.h"
#include "tests/unit/processes/memory_wire.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

std::string text_of(const Port& port) {
  return port.used() ? concat(port.link, ":", port.turn, "→", port.to, port.crosses ? "x " : " ")
                     : "- ";
}

std::string text_of(const WeightKey& key) {
  return concat(key.version, "+", key.ahead, "/", key.rule, " ");
}

std::string text_of(const Bypass& bypass) {
  std::string text = concat(bypass.behind, " ");
  for (const Bypass::Group& group : bypass.groups)
    text += concat(group.stage, "*", group.count, group.gradients ? "g" : "", text_of(group.port));
  return text;
}

/// All of an instruction but its weights as the scheme asked for them.
std::string text_of(const Instruction& i, int microbatches) {
  std::string text = concat(action_name(i.action, microbatches), " ", i.action.scale, " ");
  const ActionWeights& weights = i.weights;
  if (is_pass(i.action.kind) || weights.makes) text += text_of(weights.key);
  text += concat(weights.makes, weights.in_place, " ", weights.latest, " frees ");
  for (const WeightKey& key : weights.frees) text += text_of(key);
  text +=
      text_of(i.receive) + text_of(i.send) + text_of(i.bypass_received) + text_of(i.bypass_sent);
  return text + concat(i.input_gradient, i.restored_by ? kind_name(*i.restored_by) : "",
                       i.last_pass, i.first_half, " ", i.update_minibatch, "*", i.update_scale);
}

std::vector<std::string> instructions(const Program& program, int worker) {
  std::vector<std::string> all;
  for (Cursor cursor(program, worker); !cursor.done();)
    all.push_back(text_of(cursor.next(), program.schedule.shape.microbatches));
  return all;
}

void expect_same_program(const ScheduleMaker& make, int minibatches) {
  auto proved = find_loop(make, minibatches);
  ASSERT_TRUE(proved);
  const Program looped = compile(*std::move(proved)), whole = compile(prove(make(minibatches)));
  ASSERT_EQ(looped.minibatches(), whole.minibatches());
  EXPECT_EQ(looped.actions, whole.actions);
  EXPECT_EQ(looped.messages, whole.messages);
  for (int w = 0; w < static_cast<int>(whole.workers.size()); ++w) {
    const auto expected = instructions(whole, w), given = instructions(looped, w);
    ASSERT_EQ(given.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(given[i], expected[i]) << "worker " << w << ", action " << i;
  }
  const auto same_versions = [](const StageVersions& a, const StageVersions& b) {
    return a.copies == b.copies && a.forward_staleness == b.forward_staleness &&
           a.backward_staleness == b.backward_staleness;
  };
  for (std::size_t stage = 0; stage < whole.versions.stages.size(); ++stage)
    EXPECT_TRUE(std::ranges::equal(looped.versions.stages[stage], whole.versions.stages[stage],
                                   same_versions));
}

void expect_same_programs(const std::vector<SchemeCase>& schemes) {
  int minibatches = 100;
  for (const SchemeCase& each : schemes)
    for (PipelineShape shape : {PipelineShape{.stages = 4, .skips = {{0, 3}, {1, 2}}},
                                PipelineShape{.stages = 3, .microbatches = 3},
                                PipelineShape{.stages = 2, .replicas = 2, .microbatches = 2}}) {
      const SchemeReading reading(each.name, each.options);
      if (!reading.scheme->repeats()) continue;
      if (each.name == "data_parallel") shape = {.replicas = 2, .microbatches = 2};
      if (each.name == "pipedream_2bw") shape.microbatches = shape.stages;
      if (const auto own = reading.scheme->placement(shape.stages); !own.empty())
        shape.placement = own;
      const std::vector<std::function<Schedule(Schedule)>> forms{
          [](Schedule plain) { return plain; },
          [](Schedule plain) {
            return with_recomputation(std::move(plain), Recomputation::Always);
          },
          [](Schedule plain) { return with_offload(std::move(plain), 1); }};
      for (const auto& form : forms) {
        SCOPED_TRACE(concat(each.name, each.options, " in ", shape.stages, " stages"));
        expect_same_program(
            [&](int count) {
              PipelineShape longer = shape;
              longer.minibatches = count;
              return form(reading.scheme->schedule(longer));
            },
            minibatches);
        if (testing::Test::HasFatalFailure()) return;
      }
      minibatches = 100 + (minibatches + 1) % 12;
    }
}

TEST(LoopProgram, HasTheInstructionsOfTheWholeSchedule) {
  expect_same_programs(scheme_of_each_kind());
}

TEST(LoopProgram, HasTheInstructionsOfTheWholeScheduleOfEveryScheme) {
  expect_same_programs(every_scheme());
}

TEST(LoopProgram, HasTheInstructionsOfTheWholeEvaluation) {
  for (const int stages : {1, 2, 5})
    expect_same_program(
        [&](int count) {
          return evaluation_schedule(
              {.stages = stages, .minibatches = count, .link_capacity = 2, .training = false});
        },
        200);
}

/// 96 mini-batches, with the plan's loop or, for a trace, without.
std::string long_training(const std::string& scheme, const char* model, bool trace) {
  return concat("{scheme: ", scheme, ", pipeline.stages: 4, pipeline.microbatches: 4, ",
                "loader.batch_size: 4, dataset.train: 384, dataset.test: 240, output.trace: ",
                trace, model, "}");
}

void expect_same_bits_in_full(const std::string& scheme, const char* model) {
  SCOPED_TRACE(scheme + model);
  Laboratory looped(long_training(scheme, model, false)), whole(long_training(scheme, model, true));
  ASSERT_TRUE(looped.plan().training.loop);
  ASSERT_TRUE(looped.plan().evaluation.loop);
  ASSERT_FALSE(whole.plan().training.loop);
  ASSERT_EQ(looped.plan().training.minibatches(), whole.plan().training.minibatches());
  Stages expected = whole.plan().stages();
  const auto losses = flat_losses(train(whole.plan(), expected, Execution::Serial));
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    Stages stages = looped.plan().stages();
    EXPECT_EQ(flat_losses(train(looped.plan(), stages, execution)), losses);
    EXPECT_EQ(difference(expected, stages), "");
  }
}

TEST(LoopProgram, TrainsToTheSameBits) {
  for (const char* scheme : {"{name: gpipe}", "{name: pipedream}", "{name: zb_h1}",
                             "{name: spectrain}", "{name: interlocking, width: 2}"})
    expect_same_bits_in_full(scheme, "");
}

TEST(LoopProgram, TrainsToTheSameBitsInOtherSchemesAndWhereMapsSkipStages) {
  for (const char* scheme : {"{name: pipedream_2bw}", "{name: interleaved}", "{name: zb_v}",
                             "{name: features_replay}", "{name: spectrain, version: 2}",
                             "{name: pipeoptim}", "{name: xpipe}", "{name: delayed_sgd, delay: 3}"})
    expect_same_bits_in_full(scheme, "");
  for (const char* scheme : {"{name: gpipe}", "{name: pipedream}", "{name: interlocking}"})
    expect_same_bits_in_full(
        scheme,
        ", model: {name: unet, depth: 2, convolutions: 1, base_channels: 4, channels: 1, size: 8}, "
        "dataset.classes: 2, loss: {name: binary_cross_entropy}, pipeline.balance: layers");
}

TEST(LoopProgram, GrowsWithThePipelineNotWithTheTraining) {
  const auto size_of = [](int minibatches) {
    const SchemeReading reading("pipedream", "{}");
    const auto proved = find_loop(
        [&](int count) {
          return reading.scheme->schedule({.stages = 8, .microbatches = 4, .minibatches = count});
        },
        minibatches);
    return proved ? proved->order.size() : 0;
  };
  EXPECT_GT(size_of(1200), 0u);
  EXPECT_EQ(size_of(1200), size_of(1200 * 1000));
}

}  // namespace
}  // namespace pipewright::test
