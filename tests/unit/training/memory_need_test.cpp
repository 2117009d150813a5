// SPDX-License-Identifier: Apache-2.0
// What a training holds for certain, against what there is.
#include "core/training/memory_need.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/stage/stage.h"
#include "core/stage/stage_probe_access.h"
#include "core/system/machine_limits.h"
#include "core/tensors/torch.h"
#include "core/training/whole_model_probes.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/skips.h"

namespace pipewright::test {
namespace {

/// A model whose first and middle layer have 8·width and width·8 weights.
std::string of_width(double width) {
  return concat("{model.widths: [8, ", static_cast<std::int64_t>(width),
                ", 8, 3], pipeline.stages: 3, pipeline.balance: layers}");
}

/// A member of a team of two on one host, the other of which holds as much.
class TeamOfTwo final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::vector<std::string> gather(std::string bytes) override { return {bytes, bytes}; }
};

std::string refusal(const Plan& plan, Team& team, ErrorKind kind) {
  try {
    check_memory(plan, team);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "nothing is refused";
}

TEST(MemoryNeed, IsWhatTheStagesTake) {
  Laboratory laboratory(
      "{scheme: {name: pipedream}, optimizer: {name: adam, lr: 0.1}, pipeline.stages: 2}");
  const Plan& plan = laboratory.plan();
  const auto stages = plan.stages();
  for (int stage = 0; stage < 2; ++stage) {
    const StageNeed need = stage_need(plan, stage);
    double parameters = 0;
    for (const auto& [name, tensor] : stages[static_cast<std::size_t>(stage)]->named_parameters())
      parameters += static_cast<double>(tensor.numel());
    EXPECT_EQ(need.parameters, parameters);
    EXPECT_EQ(need.copies, 2 - stage) << "PipeDream keeps a version for each mini-batch in flight";
    const auto size =
        static_cast<double>(at::elementSize(laboratory.plan().experiment->train.precision.weights));
    EXPECT_EQ(need.bytes, parameters * size * (need.copies + 1 + 2)) << "a gradient, two moments";
  }
}

/// A gradient for each update that waits, the factors of the weights, and the weights with noise;
/// of these a narrow copy, too.
TEST(MemoryNeed, CountsWhatAPerturbationKeeps) {
  const auto bytes = [](const char* changes) {
    Laboratory laboratory(changes);
    const StageNeed need = stage_need(laboratory.plan(), 0);
    return need.bytes / need.parameters;
  };
  EXPECT_EQ(bytes("{perturb.gradient_delay: 3}"), bytes("{}") + 3 * 4);
  EXPECT_EQ(bytes("{perturb.weight_noise: 0.1}"), bytes("{}") + 2 * 4);
  EXPECT_EQ(bytes("{train.precision: bfloat16, perturb.weight_noise: 0.1}"),
            bytes("{train.precision: bfloat16}") + 2 * 4 + 2);
}

TEST(MemoryNeed, TheStageThatNeedsMoreThanThereIsIsNamed) {
  Laboratory laboratory(of_width(machine_memory().bytes));
  Team alone;
  const std::string text = refusal(laboratory.plan(), alone, ErrorKind::Data);
  EXPECT_TRUE(text.starts_with("stage 0: its parameters, gradients and optimizer state need "))
      << text;
  EXPECT_TRUE(text.ends_with(memory_limit().text)) << text;
}

TEST(MemoryNeed, ProcessesOfAHostAreAddedUp) {
  Laboratory small(of_width(1000));
  const double bytes_a_unit = stage_need(small.plan(), 0).bytes / 1000;
  Laboratory large(of_width(0.75 * machine_memory().bytes / bytes_a_unit));  // each of the two
  if (memory_limit().bytes < machine_memory().bytes)
    PIPEWRIGHT_LACKS("whole-memory") << memory_limit().text;
  TeamOfTwo pair;
  const std::string text = refusal(large.plan(), pair, ErrorKind::Worker);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  EXPECT_NE(text.find(" together, the most stage 0 with "), std::string::npos) << text;
  EXPECT_NE(text.find(concat("; host ", std::string(host).substr(0, 63), " has ")),
            std::string::npos)
      << text;
}

double bytes_of(const NamedTensors& tensors) {
  double bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

/// Six mini-batches of an epoch, of which three are measured.
TEST(MemoryNeed, HasTheCopiesThatStagesMakeOfThemselvesForProbes) {
  for (const char* optimizer : {"sgd", "adam"})
    for (const char* scheme : {"gpipe", "interlocking"}) {
      Laboratory laboratory(concat("{scheme: {name: ", scheme, "}, optimizer: {name: ", optimizer,
                                   "}, probes: [{name: sharpness, every: 2}]}"));
      const auto stages = laboratory.plan().stages();
      train(laboratory.plan(), stages, Execution::Serial);
      const WholeModelNeed need = whole_model_need(laboratory.plan());
      for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const StageProbeAccess access(*stages[stage]);
        EXPECT_EQ(need.kept[stage], 3 * (bytes_of(access.state()) + bytes_of(access.divisors())))
            << scheme << " " << optimizer << " stage " << stage;
      }
    }
}

TEST(MemoryNeed, OfProbesIsShownAndRefused) {
  const std::string probe = ", probes: [{name: sharpness, every: 1}]}";
  Laboratory small("{pipeline.stages: 2" + probe);
  const std::string shown = memory_text(small.plan());
  EXPECT_NE(shown.find(" for the probes' copies of weights; "), std::string::npos) << shown;
  // A third of the memory for the stages: weights, gradients and momentum. Six copies are twice it.
  const double bytes_a_unit = 3 * 4 * (8 + 1 + 8);
  std::string wide = of_width(machine_memory().bytes / 3 / bytes_a_unit);
  Laboratory fits(wide);
  Team alone;
  if (memory_limit().bytes < machine_memory().bytes)
    PIPEWRIGHT_LACKS("whole-memory") << memory_limit().text;
  EXPECT_EQ(refusal(fits.plan(), alone, ErrorKind::Data), "nothing is refused");
  wide.pop_back();
  Laboratory probed(wide + probe);
  const std::string text = refusal(probed.plan(), alone, ErrorKind::Data);
  EXPECT_TRUE(
      text.starts_with("the stages' parameters, gradients and optimizer state and the "
                       "probes' copies of weights need "))
      << text;
}

TEST(MemoryNeed, WhatFitsIsNotRefused) {
  Laboratory laboratory("{pipeline.stages: 2}");
  TeamOfTwo pair;
  EXPECT_EQ(refusal(laboratory.plan(), pair, ErrorKind::Data), "nothing is refused");
  EXPECT_NE(memory_text(laboratory.plan()).find(" for parameters, gradients and optimizer state; "),
            std::string::npos);
}

}  // namespace
}  // namespace pipewright::test
