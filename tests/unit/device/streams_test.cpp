// SPDX-License-Identifier: Apache-2.0
// Stages on other devices than the CPU: two fake ones, watched by a model of streams.
#include <gtest/gtest.h>

#include <limits>

#include "core/runtime/devices/late_value.h"
#include "core/runtime/devices/parcel.h"
#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/device/elsewhere.h"
#include "tests/unit/device/fake_device.h"
#include "tests/unit/device/stream_model.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

const at::Device kFirstStreamDevice = fake_device(0), kSecondStreamDevice = fake_device(1);

class Streams : public ::testing::Test {
 protected:
  void SetUp() override { model_.take_faults(); }
  void TearDown() override { EXPECT_EQ(model_.take_faults(), std::set<std::string>{}); }

  StreamModel& model_ = StreamModel::instance();
};

TEST_F(Streams, GiveTheSameBitsOnOneAndOnTwoDevices) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) {
    expect_equal_elsewhere(once(scheme), {kFirstStreamDevice, kSecondStreamDevice});
    expect_equal_elsewhere(once(scheme), {kFirstStreamDevice});
  }
}

TEST_F(Streams, GiveTheSameBitsForEverySchemeOnTwoDevices) {
  for (const SchemeCase& scheme : every_scheme())
    expect_equal_elsewhere(once(scheme), {kFirstStreamDevice, kSecondStreamDevice});
}

TEST_F(Streams, GiveTheSameBitsForEverySchemeOnOneDevice) {
  for (const SchemeCase& scheme : every_scheme())
    expect_equal_elsewhere(once(scheme), {kFirstStreamDevice});
}

TEST_F(Streams, GiveTheSameBitsWhereReplicasShareWorkers) {
  for (const SchemeCase& scheme : schemes_that_share_workers())
    for (const std::vector<at::Device>& devices :
         {std::vector{kFirstStreamDevice, kSecondStreamDevice}, std::vector{kFirstStreamDevice}})
      for (const char* offload : {"never", "always"}) {
        const std::string changes = once(scheme);
        expect_equal_elsewhere(
            concat(changes.substr(0, changes.size() - 1), ", pipeline.offload: ", offload, "}"),
            devices);
      }
}

TEST_F(Streams, GiveTheSameBitsWhereSomeStagesAreOnTheCpu) {
  for (const char* scheme : {"gpipe", "pipedream", "interlocking"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme, "}, train.precision: float64}"),
        {at::kCPU, kFirstStreamDevice, kSecondStreamDevice, at::kCPU, kFirstStreamDevice});
}

TEST_F(Streams, GiveTheSameBitsWithReplicasOnTwoDevices) {
  for (const char* scheme : {"gpipe", "pipedream"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, pipeline.stages: 2, pipeline.replicas: 2}"),
        {kFirstStreamDevice, kSecondStreamDevice, kSecondStreamDevice, kFirstStreamDevice});
}

TEST_F(Streams, GiveTheSameBitsWhereActivationsWaitOnTheHost) {
  for (const char* scheme : {"gpipe", "one_f_one_b", "pipedream", "zb_h1", "interlocking"})
    for (const std::vector<at::Device>& devices :
         {std::vector{kFirstStreamDevice, kSecondStreamDevice}, std::vector{kFirstStreamDevice}})
      for (const int ahead : {0, 1})
        expect_equal_elsewhere(
            concat("{scheme: {name: ", scheme,
                   "}, train.precision: float64, pipeline.microbatches: 4, dataset.train: 40, "
                   "pipeline.offload: always, pipeline.fetch_ahead: ",
                   ahead, "}"),
            devices);
}

/// 64 samples in 8 micro-batches; a hidden layer keeps 8 x 64 doubles of each. Neighbours are on
/// two devices, because on one they would share what one keeps as output and the other as input.
TEST_F(Streams, HoldFewerBytesWhereActivationsWaitOnTheHost) {
  const auto most_bytes = [&](const char* offload) {
    Laboratory laboratory(concat(
        "{scheme: {name: gpipe}, model.widths: [6, 64, 64, 64, 3], pipeline.microbatches: 8, "
        "loader.batch_size: 64, dataset.train: 64, train.precision: float64, pipeline.offload: ",
        offload, "}"));
    const Plan& plan = plan_on(laboratory, {kFirstStreamDevice, kSecondStreamDevice});
    const Stages stages = plan.stages();
    model_.take_most_bytes();
    train(plan, stages, Execution::Serial);
    return model_.take_most_bytes();
  };
  constexpr std::size_t kHidden = 8 * 64 * sizeof(double);
  const std::size_t kept = most_bytes("never"), moved = most_bytes("always");
  std::printf("at most %zu bytes on the devices, %zu with offload\n", kept, moved);
  // Three stages have such a layer; of 8 micro-batches 2 stay at each.
  EXPECT_LT(moved + 3 * 5 * kHidden, kept);
}

TEST_F(Streams, GiveTheSameBitsOfADisturbedTraining) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, perturb: {gradient_delay: 2, weight_noise: 0.1}}"),
        {kFirstStreamDevice, kSecondStreamDevice});
}

/// Copies are made by operators here instead of a loop. The numbers are not the CPU's: what an
/// optimizer rounds otherwise in float32 may round to the neighbour in bfloat16.
TEST_F(Streams, GiveTheSameBitsInMixedPrecision) {
  for (const auto& [precision, narrow] :
       {std::pair("bfloat16", at::kBFloat16), std::pair("float16", at::kHalf)})
    for (const char* scheme : {"gpipe", "spectrain", "pipeoptim", "pipemare", "zb_h1"}) {
      Laboratory laboratory(concat("{scheme: {name: ", scheme, "}, train.precision: ", precision,
                                   ", pipeline.microbatches: 2}"));
      if (narrow == at::kHalf)  // so that gradients overflow and updates are skipped
        laboratory.scale(0, [](const Pass& pass) { return pass.minibatch == 2 ? 2e4 : 1; });
      const std::string what = concat(scheme, " in ", precision);
      const Plan& plan = plan_on(laboratory, {kFirstStreamDevice, kSecondStreamDevice});
      const Stages serial = plan.stages(), threads = plan.stages();
      const RunResult a = train(plan, serial, Execution::Serial);
      const RunResult b = train(plan, threads, Execution::Threads);
      EXPECT_EQ(difference(serial, threads), "") << what;
      EXPECT_EQ(flat_losses(a), flat_losses(b)) << what;
      if (narrow == at::kHalf) {
        EXPECT_GT(threads[0]->loss_scale()->skipped, 0) << what;
      }
      for (const auto& stage : threads) {
        const auto parameters = stage->named_parameters();
        stage->weights().install({stage->weights().latest_number(), 0, 0});
        for (std::size_t i = 0; i < parameters.size(); ++i)
          EXPECT_TRUE(
              at::equal(stage->weights().leaves()[i].detach(), parameters[i].second.to(narrow)))
              << what << ": " << parameters[i].first;
      }
    }
}

TEST_F(Streams, GiveTheSameBitsOverEpochsAndEvaluations) {
  auto trained = [](Execution execution, const std::vector<at::Device>& devices) {
    Laboratory laboratory("{scheme: {name: spectrain}, train.precision: float64, train.epochs: 3}");
    laboratory.experiment.pipeline.execution = execution;
    const Plan& plan = plan_on(laboratory, devices);
    Team alone;
    Trainer trainer(plan, alone, nullptr, nullptr, nullptr);
    trainer.train();
    std::vector<std::pair<double, double>> tests;
    for (const EpochRow& row : trainer.epochs())
      tests.emplace_back(row.test_loss, row.test_accuracy);
    return tests;
  };
  const auto cpu = trained(Execution::Serial, {at::kCPU});
  const auto serial = trained(Execution::Serial, {kFirstStreamDevice, kSecondStreamDevice});
  const auto threads = trained(Execution::Threads, {kFirstStreamDevice, kSecondStreamDevice});
  EXPECT_EQ(serial, threads);
  for (std::size_t epoch = 0; epoch < cpu.size(); ++epoch) {
    EXPECT_NEAR(cpu[epoch].first, threads[epoch].first, kFloat64Relative);
    EXPECT_EQ(cpu[epoch].second, threads[epoch].second);
  }
}

/// Each loss is waited for, and at the end each worker's stream; nothing else.
TEST_F(Streams, LetTheHostWaitForLossesOnly) {
  Laboratory laboratory("{scheme: {name: gpipe}, pipeline.microbatches: 2}");
  const Plan& plan = plan_on(laboratory, {kFirstStreamDevice, kSecondStreamDevice});
  const Stages stages = plan.stages();
  const int before = model_.host_waits();
  train(plan, stages, Execution::Threads);
  EXPECT_EQ(model_.host_waits() - before, 2 * plan.minibatches + 4);
}

TEST_F(Streams, AreTheWorkersOwnAndTheSameInEveryRun) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  const Plan& plan = plan_on(laboratory, {kFirstStreamDevice});
  const Stages stages = plan.stages();
  train(plan, stages, Execution::Threads);
  const int used = model_.streams_used(0);
  EXPECT_GE(used, 4);
  train(plan, stages, Execution::Threads);
  EXPECT_EQ(model_.streams_used(0), used);
}

TEST_F(Streams, FindALossThatIsNotFiniteAtMostOneMiniBatchLater) {
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    Laboratory laboratory("{scheme: {name: pipedream}}");
    int latest = 0;
    laboratory.scale(3, [&latest](const Pass& pass) {
      latest = pass.minibatch;
      return pass.minibatch == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    });
    const Plan& plan = plan_on(laboratory, {kFirstStreamDevice, kSecondStreamDevice});
    const Stages stages = plan.stages();
    try {
      train(plan, stages, execution);
      ADD_FAILURE() << "training came to its end";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::NotFinite);
      EXPECT_EQ(error.where(), "worker 3, stage 3, 3F2");
      EXPECT_NE(error.message().find("with version 2 of the weights;"), std::string::npos)
          << error.message();
    }
    EXPECT_EQ(latest, 3);
  }
}

TEST_F(Streams, FindALossThatIsNotFiniteInTheLastMiniBatch) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  const Plan& plan = plan_on(laboratory, {kFirstStreamDevice, kSecondStreamDevice});
  const int last = plan.minibatches - 1;
  Laboratory broken("{scheme: {name: pipedream}}");
  broken.scale(3, [last](const Pass& pass) {
    return pass.minibatch == last ? std::numeric_limits<double>::infinity() : 1.0;
  });
  const Plan& broken_plan = plan_on(broken, {kFirstStreamDevice, kSecondStreamDevice});
  EXPECT_THROW(train(broken_plan, broken_plan.stages(), Execution::Threads), Error);
}

// ---- the model itself finds what it is there to find -------------------------------------------

/// Work on a worker's stream, and a look at its result on another.
class Watched : public ::testing::Test {
 protected:
  void SetUp() override { model_.take_faults(); }

  static c10::Stream stream(at::Device device, int number) {
    return c10::Stream(c10::Stream::UNSAFE, device, 100 + number);
  }
  static at::Tensor made_on(const c10::Stream& on) {
    const c10::StreamGuard guard(on);
    return at::ones({3}, at::TensorOptions(on.device()));
  }

  StreamModel& model_ = StreamModel::instance();
};

TEST_F(Watched, AReadThatDoesNotWaitIsAFault) {
  const at::Tensor x = made_on(stream(kFirstStreamDevice, 1));
  const c10::StreamGuard guard(stream(kFirstStreamDevice, 2));
  x.add(1);
  EXPECT_EQ(model_.take_faults().size(), 1);
}

TEST_F(Watched, MemoryFreedWhileAnotherStreamUsesItIsAFault) {
  at::Tensor x = made_on(stream(kFirstStreamDevice, 1));
  const c10::StreamGuard guard(stream(kFirstStreamDevice, 2));
  model_.block({0, 102}, model_.record({0, 101}));
  x.add(1);
  EXPECT_TRUE(model_.take_faults().empty());
  x.reset();
  EXPECT_EQ(model_.take_faults().size(), 1);
}

TEST_F(Watched, AParcelIsNotOpenedWithoutArriving) {
  for (const at::Device to : {kFirstStreamDevice, kSecondStreamDevice}) {
    const at::Tensor x = made_on(stream(kFirstStreamDevice, 1));
    Parcel parcel;
    {
      const c10::StreamGuard sender(stream(kFirstStreamDevice, 1));
      parcel = depart({x}, to);
    }
    const c10::StreamGuard receiver(stream(to, 2));
    parcel.tensors[0].add(1);
    EXPECT_FALSE(model_.take_faults().empty());
    const Tensors tensors = arrive(std::move(parcel));
    tensors[0].add(1);
    EXPECT_TRUE(model_.take_faults().empty());
  }
}

TEST_F(Watched, ALateValueIsReadAfterItsCopy) {
  const c10::StreamGuard guard(stream(kFirstStreamDevice, 1));
  const at::Tensor x = at::full({}, 2.5, at::TensorOptions(kFirstStreamDevice));
  const at::Tensor host = at::empty({});
  host.copy_(x, true);
  EXPECT_NE(host.item<double>(), 2.5);
  EXPECT_EQ(LateValue(x).read().item<double>(), 2.5);
}

}  // namespace
}  // namespace pipewright::test
