// SPDX-License-Identifier: Apache-2.0
// Bounded links: a fast stage does not run away from a slow one.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/runtime/executor.h"
#include "core/runtime/transport.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// How far stage 0 is ahead when stage 1 refuses to go on, and the most it ever was.
class Ahead {
 public:
  void begin_first() {
    const std::lock_guard lock(mutex_);
    ++first_;
    changed_.notify_all();
  }
  /// The first time, waits until stage 0 is `reach` mini-batches in.
  void begin_second(int reach) {
    std::unique_lock lock(mutex_);
    if (++second_ == 1) changed_.wait(lock, [&] { return first_ >= reach; });
    most_ = std::max(most_, first_ - second_);
  }
  int most() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int first_ = 0, second_ = 0, most_ = 0;
};

/// A clock that is a minute later each time it is asked.
std::atomic<int> asked = 0;
std::chrono::steady_clock::time_point hasty_now() {
  const int minutes = ++asked;
  asked.notify_all();
  return std::chrono::steady_clock::time_point(std::chrono::minutes(minutes));
}
void wait_until_asked(int times) {
  for (int now = asked; now < times; now = asked) asked.wait(now);
}

/// What a worker sends or receives, in order.
std::vector<Port> ports(const Program& program, std::size_t worker, Port Instruction::*end) {
  std::vector<Port> all;
  for (const Instruction& each : program.workers[worker])
    if ((each.*end).used()) all.push_back(each.*end);
  return all;
}

void evaluate(const Plan& plan, const Program& program, Execution execution) {
  Loader loader = plan.evaluation_loader();
  const Stages stages = plan.stages();
  execute(program, stages,
          {.batches = loader,
           .lr = [](int) { return 0.0; },
           .minibatches_per_epoch = loader.minibatches(),
           .execution = execution});
}

TEST(Links, LetASenderWaitWhereTheyAreFull) {
  for (const int capacity : {1, 3}) {
    const Program program = compile(
        prove(evaluation_schedule({.stages = 2, .minibatches = 10, .link_capacity = capacity})));
    const auto sent = ports(program, 0, &Instruction::send),
               received = ports(program, 1, &Instruction::receive);
    const std::atomic<bool> stop = true;  // a call that would wait throws instead
    const auto transport = queue_transport(program, {at::kCPU, at::kCPU}, &stop, {});
    const auto send = [&](std::size_t i) { transport->send(sent.at(i), {{at::ones({1})}}); };
    const auto room = static_cast<std::size_t>(capacity);
    for (std::size_t i = 0; i < room; ++i) EXPECT_NO_THROW(send(i));
    EXPECT_THROW(send(room), Error);
    EXPECT_EQ(transport->receive(received.at(0), 1, {}).tensors.size(), 1u);
    EXPECT_NO_THROW(send(room));
    EXPECT_THROW(send(room + 1), Error);
  }
}

TEST(Links, HoldAsManyMessagesAsAnEvaluationAllows) {
  for (const int capacity : {1, 3}) {
    Laboratory laboratory("{pipeline.stages: 2, dataset.test: 80}");
    Ahead ahead;
    // On its way are: one in stage 1, `capacity` on the link, one that waits for room.
    const int reach = capacity + 2;
    laboratory.watch(0, [&](const Pass&) { ahead.begin_first(); });
    laboratory.watch(laboratory.experiment.layers.size() - 1,
                     [&](const Pass&) { ahead.begin_second(reach); });
    const Program program = compile(
        prove(evaluation_schedule({.stages = 2, .minibatches = 10, .link_capacity = capacity})));
    evaluate(laboratory.plan(), program, Execution::Threads);
    EXPECT_EQ(ahead.most(), capacity + 1);
  }
}

TEST(Links, OfAPlansEvaluationAreBounded) {
  Laboratory laboratory("{pipeline.stages: 2, dataset.test: 160}");
  Ahead ahead;
  laboratory.watch(0, [&](const Pass&) { ahead.begin_first(); });
  laboratory.watch(3, [&](const Pass&) { ahead.begin_second(4); });
  const Plan& plan = laboratory.plan();
  EXPECT_EQ(plan.evaluation.schedule.shape.link_capacity, 2);
  evaluate(plan, plan.evaluation, Execution::Threads);
  EXPECT_EQ(ahead.most(), 3);
}

TEST(Links, AreTheSameToASerialEvaluation) {
  Laboratory laboratory("{dataset.test: 80}");
  Ahead ahead;
  laboratory.watch(0, [&](const Pass&) { ahead.begin_first(); });
  laboratory.watch(1, [&](const Pass&) { ahead.begin_second(0); });
  evaluate(laboratory.plan(), laboratory.plan().evaluation, Execution::Serial);
  EXPECT_LE(ahead.most(), 2);
}

TEST(Links, EndARunInWhichEverybodyWaits) {
  Laboratory laboratory("{pipeline.stages: 2}");
  const Program& program = laboratory.plan().training;
  const auto transport = queue_transport(program, {at::kCPU, at::kCPU}, nullptr,
                                         std::chrono::milliseconds(150), hasty_now);
  transport->worker_finished();  // worker 0 is over without having sent anything
  const Instruction& first = program.workers[1][0];
  ASSERT_TRUE(first.receive.used());
  try {
    transport->receive(first.receive, 1, {});
    ADD_FAILURE() << "something came";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Worker);
    EXPECT_NE(error.message().find("deadlock: every worker waits for a message of another"),
              std::string::npos);
  }
}

TEST(Links, AreWaitedForWhileSomebodyWorks) {
  Laboratory laboratory("{pipeline.stages: 2}");
  const Program& program = laboratory.plan().training;
  const auto transport = queue_transport(program, {at::kCPU, at::kCPU}, nullptr,
                                         std::chrono::milliseconds(150), hasty_now);
  asked = 0;
  std::jthread slow([&] {
    wait_until_asked(4);  // a receiver that counts only its own time gives up at the third
    transport->send(ports(program, 0, &Instruction::send).at(0), {{at::ones({1})}});
  });
  try {
    EXPECT_EQ(transport->receive(program.workers[1][0].receive, 1, {}).tensors.size(), 1u);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    for (int i = 0; i < 4; ++i) hasty_now();  // the sender shall end, too
  }
}

}  // namespace
}  // namespace pipewright::test
