// Every scheme in both executions: the same bits, and no more copies of the weights than counted.
#include <gtest/gtest.h>

#include "core/stage/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

/// `name: …` in front of a scheme's options.
std::string scheme_text(const SchemeCase& scheme) {
  const std::string options = scheme.options.substr(1, scheme.options.size() - 2);
  return concat("{name: ", scheme.name, options.empty() ? "" : ", ", options, "}");
}

/// Lookahead and geometric velocities are SGD's.
std::string changes_for(const SchemeCase& scheme, int microbatches) {
  const bool one_stage = scheme.name == "data_parallel";
  return concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
                ", pipeline.replicas: ", one_stage ? 2 : 1,
                ", pipeline.microbatches: ", microbatches, ", dataset.train: 40}");
}

void expect_same_bits(Laboratory& laboratory, const std::string& what) {
  const Plan& plan = laboratory.plan();
  const Stages serial = plan.stages(), threads = plan.stages();
  const RunResult a = train(plan, serial, Execution::Serial);
  const RunResult b = train(plan, threads, Execution::Threads);
  EXPECT_EQ(difference(serial, threads), "") << what;
  EXPECT_EQ(flat_losses(a), flat_losses(b)) << what;
}

TEST(Executions, GiveTheSameBitsForEverySchemeOnAMultilayerPerceptron) {
  for (const SchemeCase& scheme : every_scheme()) {
    Laboratory laboratory(changes_for(scheme, 4));
    expect_same_bits(laboratory, scheme.name + scheme.options);
  }
}

TEST(Executions, GiveTheSameBitsForEverySchemeWithBatchNormAndDropout) {
  std::string before;
  for (const SchemeCase& scheme : every_scheme()) {
    if (scheme.name == before) continue;  // the first of each: convolutions cost
    before = scheme.name;
    Laboratory laboratory(
        concat(changes_for(scheme, 4).substr(0, changes_for(scheme, 4).size() - 1),
               ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}"));
    expect_same_bits(laboratory, scheme.name);
  }
}

TEST(Executions, GiveTheSameBitsWhereStagesShareWorkers) {
  for (const char* scheme : {"pipedream", "spectrain", "interlocking"}) {
    Laboratory laboratory(
        concat("{scheme: {name: ", scheme, "}, pipeline.placement: [0, 1, 0, 1]}"));
    expect_same_bits(laboratory, scheme);
  }
}

TEST(Executions, HoldNoMoreCopiesThanTheScheduleCounts) {
  for (const SchemeCase& scheme : every_scheme())
    for (const int microbatches : {1, 4}) {
      if (scheme.name == "pipedream_2bw" && microbatches == 1) continue;
      Laboratory laboratory(changes_for(scheme, microbatches));
      const Plan& plan = laboratory.plan();
      const Stages stages = plan.stages();
      train(plan, stages, Execution::Serial);
      const std::size_t count = plan.training.versions.stages.size();
      for (std::size_t i = 0; i < stages.size(); ++i)
        EXPECT_LE(stages[i]->weights().most_copies(),
                  plan.training.versions.stages[i % count][i / count].copies)
            << scheme.name << scheme.options << ": stage " << i % count;
    }
}

TEST(Executions, LeaveOneCopyWhenTheScheduleIsOver) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, Execution::Threads);
  for (const auto& stage : stages) EXPECT_EQ(stage->weights().copies(), 1);
  EXPECT_EQ(stages[0]->weights().most_copies(), 4);
}

}  // namespace
}  // namespace pipewright::test
