// SPDX-License-Identifier: Apache-2.0
// What a failure leaves of every worker: its last actions.
#include "core/runtime/action_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/runtime/executor.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

std::string first_word(const std::string& line) {
  return line.substr(0, line.find(' '));
}

TEST(ActionLog, KeepsTheLastActionsOfEachWorker) {
  ActionLog log(2);
  EXPECT_EQ(log.last(0), "");
  EXPECT_EQ(log.current(0), "");
  const PipelineShape training{.stages = 2, .microbatches = 2};
  for (int m = 0; m < 100; ++m)
    log.begin(0, {.kind = ActionKind::Backward, .minibatch = m, .microbatch = 1}, training);
  const auto kept = lines(log.last(0));
  ASSERT_EQ(std::ssize(kept), ActionLog::kLength);
  EXPECT_EQ(first_word(kept.front()), "0B36.1");
  EXPECT_EQ(first_word(kept.back()), "0B99.1");
  EXPECT_EQ(log.current(0), "stage 0, 0B99.1");
  EXPECT_EQ(log.last(1), "");
}

TEST(ActionLog, SaysWhatWasEvaluation) {
  ActionLog log(1);
  log.begin(0, {.minibatch = 7}, {.training = false});
  EXPECT_EQ(first_word(log.last(0)), "0F7");
  EXPECT_TRUE(log.last(0).ends_with(" evaluation\n"));
}

TEST(ActionLog, IsWrittenByEveryExecution) {
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    Laboratory laboratory("{scheme: {name: pipedream}}");
    const Plan& plan = laboratory.plan();
    Loader loader = plan.training_loader(0, 1, 0);
    const Stages stages = plan.stages();
    ActionLog log(4);
    execute(plan.training, stages,
            {.batches = loader,
             .lr = [](int) { return 0.05; },
             .minibatches_per_epoch = plan.minibatches,
             .execution = execution,
             .log = &log});
    for (int worker = 0; worker < 4; ++worker) {
      std::vector<std::string> done;
      for (const std::string& line : lines(log.last(worker))) done.push_back(first_word(line));
      std::vector<std::string> planned;
      for (const Instruction& each : plan.training.workers[static_cast<std::size_t>(worker)])
        planned.push_back(action_name(each.action));
      EXPECT_EQ(done, planned);
    }
  }
}

}  // namespace
}  // namespace pipewright::test
