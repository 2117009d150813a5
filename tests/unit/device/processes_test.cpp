// SPDX-License-Identifier: Apache-2.0
// Processes whose workers are on devices: what they exchange goes from device to device, over a
// stand-in for NCCL, and its order on streams is watched.
#include <gtest/gtest.h>

#include <thread>

#include "core/base/as_size.h"
#include "core/tensors/torch.h"
#include "tests/unit/device/elsewhere.h"
#include "tests/unit/device/fake_device.h"
#include "tests/unit/device/fake_nccl.h"
#include "tests/unit/device/stream_model.h"
#include "tests/unit/processes/memory_wire.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

using namespace std::chrono_literals;

constexpr TeamPatience kSoon{
    .heartbeat = 5ms, .silence = 1h, .reaction = 1h, .after_signal = 1h, .last_look = 50ms};

const at::Device kFirst = fake_device(0), kSecond = fake_device(1);
using Devices = std::vector<at::Device>;

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    StreamModel::instance().take_faults();
    take_nccl_messages();
  }
  void TearDown() override {
    fail_nccl_at(-1);
    fail_nccl_in_background(false);
  }

  /// One process per worker; the stages come from the process that holds them.
  std::vector<Ended> run(const std::string& changes, const Devices& devices, Stages& all,
                         const std::function<void(Laboratory&)>& prepare = {}) const {
    Laboratory counted(changes);
    all.resize(plan_on(counted, devices).stages().size());
    std::mutex mutex;
    return play(
        counted.experiment.shape(1).workers(),
        [&](WireTeam& team) {
          Laboratory laboratory(changes);
          if (prepare) prepare(laboratory);
          const Plan& plan = plan_on(laboratory, devices);
          Stages stages = plan.stages(team);
          train(plan, stages, Execution::Mpi, nullptr, 0, &team);
          train(plan, stages, Execution::Mpi, nullptr, 1, &team);  // what is connected stays so
          const std::lock_guard lock(mutex);
          for (std::size_t i = 0; i < stages.size(); ++i)
            if (stages[i]) all[i] = std::move(stages[i]);
        },
        kSoon, nullptr, nccl_);
  }

  /// Two epochs end in the bits of `serial` on the same devices; returns the messages that went
  /// from device to device, of each epoch.
  int expect_as_serial(const std::string& changes, const Devices& devices) {
    SCOPED_TRACE(changes);
    take_nccl_messages();
    Stages processes;
    for (const Ended& process : run(changes, devices, processes))
      if (process.error) ADD_FAILURE() << process.error->what();
    const int messages = take_nccl_messages();
    EXPECT_EQ(StreamModel::instance().take_faults(), std::set<std::string>{});
    Laboratory laboratory(changes);
    const Plan& plan = plan_on(laboratory, devices);
    const Stages serial = plan.stages();
    for (const int epoch : {0, 1}) train(plan, serial, Execution::Serial, nullptr, epoch);
    EXPECT_EQ(difference(serial, processes), "");
    StreamModel::instance().take_faults();
    EXPECT_EQ(messages % 2, 0);
    return messages / 2;
  }

  DeviceGroups::Find nccl_ = fake_nccl;
};

/// Messages of one epoch between two workers; those between two stages of one worker stay there.
int links_messages(const std::string& changes) {
  Laboratory laboratory(changes);
  const Program& program = laboratory.plan().training;
  const auto crosses = [&](int number) {
    const Link& link = program.links[as_size(number)];
    return link.from != link.to;
  };
  int messages = 0;
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      messages += instruction.send.used() && crosses(instruction.send.link) ? 1 : 0;
  return messages;
}

TEST_F(Processes, ExchangeFromDeviceToDevice) {
  for (const SchemeCase& scheme : scheme_of_each_kind())
    EXPECT_EQ(expect_as_serial(once(scheme), {kFirst, kSecond}), links_messages(once(scheme)));
}

TEST_F(Processes, ExchangeFromDeviceToDeviceInEveryScheme) {
  for (const SchemeCase& scheme : every_scheme()) {
    if (scheme.name == "data_parallel") continue;
    EXPECT_EQ(expect_as_serial(once(scheme), {kFirst, kSecond}), links_messages(once(scheme)));
  }
}

TEST_F(Processes, AddReplicasOnTheDevices) {
  const std::string changes =
      "{scheme: {name: pipedream}, pipeline.stages: 2, pipeline.replicas: 2, "
      "train.precision: float64}";
  Laboratory laboratory(changes);
  const int sums = 2 * 2 * laboratory.plan().minibatches;  // stages, replicas: one slice each …
  EXPECT_EQ(expect_as_serial(changes, {kFirst, kSecond, kSecond, kFirst}),
            links_messages(changes) + 2 * sums);  // … which goes and comes back
}

TEST_F(Processes, TakeMessagesInTheOrderTheyWereSent) {
  // Two links from worker 0 to 1 and back: stages 0 and 2, 1 and 3.
  for (const char* scheme : {"gpipe", "pipedream", "one_f_one_b"}) {
    const std::string changes = concat(
        "{scheme: {name: ", scheme,
        "}, pipeline.stages: 4, pipeline.placement: [0, 1, 0, 1], train.precision: float64}");
    EXPECT_EQ(expect_as_serial(changes, {kFirst, kSecond}), links_messages(changes));
  }
}

TEST_F(Processes, WaitWhereALinkHoldsNoMore) {
  const std::string changes = "{scheme: {name: gpipe}, pipeline.microbatches: 4}";
  const auto questions = [&](int capacity) {
    Stages stages;
    const int before = questions_about_events();
    for (const Ended& process :
         run(changes, {kFirst, kSecond}, stages, [&](Laboratory& laboratory) {
           laboratory.plan().training.schedule.shape.link_capacity = capacity;
         }))
      EXPECT_FALSE(process.error);
    return questions_about_events() - before;
  };
  // Every message but the first of each of six links waits, for the third answer.
  const int epochs = 2, links = 6;
  EXPECT_EQ(questions(1) - questions(0), 3 * epochs * (links_messages(changes) - links));
}

TEST_F(Processes, GoThroughTheHostOnOneDevice) {
  EXPECT_EQ(expect_as_serial("{scheme: {name: pipedream}}", {kFirst}), 0);
}

TEST_F(Processes, GoThroughTheHostWhereTwoOfThreeShareADevice) {
  EXPECT_EQ(expect_as_serial("{scheme: {name: data_parallel}, pipeline.stages: 1, "
                             "pipeline.replicas: 3, train.precision: float64}",
                             {kFirst, kSecond}),
            0);
}

TEST_F(Processes, GoThroughTheHostWithoutNccl) {
  nccl_ = []() -> const NcclApi* { return nullptr; };
  EXPECT_EQ(expect_as_serial("{scheme: {name: pipedream}}", {kFirst, kSecond}), 0);
}

TEST_F(Processes, GoThroughTheHostToAndFromACpu) {
  const std::string changes = "{scheme: {name: pipedream}, pipeline.stages: 3}";
  const int all = links_messages(changes);
  EXPECT_EQ(expect_as_serial(changes, {at::kCPU, kFirst, kSecond}), all / 2);
}

TEST_F(Processes, EndWhenAMessageCannotBeSent) {
  fail_nccl_at(12 + 7);  // six links have met, in both directions
  Stages stages;
  for (const Ended& process : run("{scheme: {name: pipedream}}", {kFirst, kSecond}, stages)) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->kind(), ErrorKind::Worker);
    EXPECT_EQ(process.error->message(), "NCCL cannot exchange: a cable was pulled");
    EXPECT_TRUE(process.error->where().starts_with("worker ")) << process.error->where();
  }
}

TEST_F(Processes, EndWhenNcclFailsInTheBackground) {
  Stages stages;
  const auto fail_soon = [](Laboratory& laboratory) {
    laboratory.watch(2, [](const Pass& pass) {
      if (pass.minibatch != 3) return;
      fail_nccl_in_background(true);
      wait_until_nccl_is_asked();  // by a keeper, sooner or later
    });
  };
  for (const Ended& process :
       run("{scheme: {name: pipedream}}", {kFirst, kSecond}, stages, fail_soon)) {
    ASSERT_TRUE(process.error);
    EXPECT_EQ(process.error->message(), "NCCL reports: a cable was pulled");
  }
}

}  // namespace
}  // namespace pipewright::test
