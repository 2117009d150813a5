// SPDX-License-Identifier: Apache-2.0
// What ends a run early: a layer that throws, a loss that is not finite, a stop. Nobody hangs: a
// run that does not end is killed by ctest, and no test here looks at a clock.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

constexpr Execution kBothExecutions[] = {Execution::Serial, Execution::Threads};

/// The error that ends training; fails the test if nothing does.
Error failure_of(Laboratory& laboratory, Execution execution,
                 const std::atomic<bool>* stop = nullptr) {
  const Stages stages = laboratory.plan().stages();
  try {
    train(laboratory.plan(), stages, execution, stop);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "training came to its end";
  return Error(ErrorKind::Bug, "no error");
}

/// The last mini-batch whose forward a stage began.
class Last {
 public:
  void begin(const Pass& pass) {
    minibatch_ = pass.minibatch;
    minibatch_.notify_all();
  }
  void wait_for(int minibatch) const {
    for (int last = minibatch_; last < minibatch; last = minibatch_) minibatch_.wait(last);
  }
  int minibatch() const { return minibatch_; }

 private:
  std::atomic<int> minibatch_ = -1;
};

class Failures : public testing::TestWithParam<Execution> {};

TEST_P(Failures, OfALayerNameWorkerStageAndAction) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  laboratory.watch(1, [](const Pass& pass) {
    if (pass.minibatch == 3) throw std::runtime_error("the layer is broken\nand this is its trace");
  });
  const Error error = failure_of(laboratory, GetParam());
  EXPECT_EQ(error.kind(), ErrorKind::Worker);
  EXPECT_EQ(error.where(), "worker 1, stage 1, 1F3");
  EXPECT_EQ(error.message(), "the layer is broken");
}

TEST_P(Failures, NameTheWorkerThatHoldsTheStage) {
  Laboratory laboratory(
      "{scheme: {name: gpipe}, pipeline.microbatches: 2, pipeline.placement: [1, 0, 1, 0]}");
  laboratory.watch(2, [](const Pass& pass) {
    if (pass.minibatch == 1 && pass.first_sample == 4) throw std::runtime_error("broken");
  });
  EXPECT_EQ(failure_of(laboratory, GetParam()).where(), "worker 1, stage 2, 2F1.1");
}

TEST_P(Failures, AnywhereLetEverybodyEnd) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomStream stream(seed, "test");
    const auto stage = stream.below(0, 4);
    const auto minibatch = static_cast<int>(stream.below(1, 6));
    Laboratory laboratory(
        concat("{scheme: {name: ", seed % 2 == 0 ? "pipedream" : "spectrain", "}}"));
    Last last;
    laboratory.watch(stage, [&](const Pass& pass) {
      last.begin(pass);
      if (pass.minibatch == minibatch) throw std::runtime_error("broken");
    });
    const Error error = failure_of(laboratory, GetParam());
    EXPECT_EQ(last.minibatch(), minibatch) << "it went on";
    EXPECT_EQ(error.where(),
              concat("worker ", stage, ", stage ", stage, ", ", stage, "F", minibatch));
  }
}

TEST_P(Failures, OfAWorkerBetweenReplicasLetTheOthersEnd) {
  Laboratory laboratory("{scheme: {name: pipedream}, pipeline.replicas: 2}");
  laboratory.watch(3, [](const Pass& pass) {
    if (pass.minibatch == 2 && pass.first_sample == 4) throw std::runtime_error("broken");
  });
  EXPECT_EQ(failure_of(laboratory, GetParam()).where(), "worker 7, stage 3, 3F2");
}

/// Throws wherever it runs, also on the meta device.
class Broken final : public Layer {
 public:
  explicit Broken(std::string name) { set_name(std::move(name)); }
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    throw std::runtime_error("always broken");
  }
};

TEST_P(Failures, OfALayerThatIsBrokenWhereShapesAreCheckedAreThoseOfTheTraining) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  LayerPtr& layer = laboratory.experiment.layers[1];
  layer = std::make_shared<Broken>(layer->name());
  const Error error = failure_of(laboratory, GetParam());
  EXPECT_EQ(error.where(), "worker 1, stage 1, 1F0");
  EXPECT_EQ(error.message(), "always broken");
}

TEST_P(Failures, OfOurOwnKindsKeepTheirKind) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  laboratory.watch(2, [](const Pass&) { throw Error(ErrorKind::Experiment, "cannot", "here"); });
  const Error error = failure_of(laboratory, GetParam());
  EXPECT_EQ(error.kind(), ErrorKind::Experiment);
  EXPECT_STREQ(error.what(), "here: cannot");
}

TEST_P(Failures, OfALossNameStageMiniBatchAndVersion) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  laboratory.scale(3, [](const Pass& pass) {
    return pass.minibatch == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
  });
  const Error error = failure_of(laboratory, GetParam());
  EXPECT_EQ(error.kind(), ErrorKind::NotFinite);
  EXPECT_EQ(error.where(), "worker 3, stage 3, 3F2");
  EXPECT_NE(error.message().find("the loss of mini-batch 2 of epoch 0 at stage 3 is"),
            std::string::npos)
      << error.message();
  EXPECT_NE(error.message().find("with version 2 of the weights;"), std::string::npos)
      << error.message();
}

TEST_P(Failures, OfALossCountTheUpdatesOfEarlierEpochsToo) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  laboratory.scale(3, [](const Pass& pass) {
    return pass.epoch == 1 && pass.minibatch == 2 ? std::numeric_limits<double>::infinity() : 1.0;
  });
  const Stages stages = laboratory.plan().stages();
  train(laboratory.plan(), stages, GetParam(), nullptr, 0);
  try {
    train(laboratory.plan(), stages, GetParam(), nullptr, 1);
    ADD_FAILURE() << "training came to its end";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("mini-batch 2 of epoch 1"), std::string::npos)
        << error.message();
    EXPECT_NE(error.message().find("with version 8 of the weights;"), std::string::npos)
        << error.message();
  }
}

TEST_P(Failures, AStopEndsTheRunBeforeTheNextPass) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  std::atomic<bool> stop = false;
  Last last;
  laboratory.watch(0, [&](const Pass& pass) {
    last.begin(pass);
    if (pass.minibatch == 4) stop = true;
  });
  EXPECT_EQ(failure_of(laboratory, GetParam(), &stop).kind(), ErrorKind::Interrupted);
  EXPECT_EQ(last.minibatch(), 4);
}

INSTANTIATE_TEST_SUITE_P(InBothExecutions, Failures, testing::ValuesIn(kBothExecutions),
                         [](const auto& each) {
                           return each.param == Execution::Serial ? "Serial" : "Threads";
                         });

TEST(Stop, WakesWorkersThatWaitForAnother) {
  Laboratory laboratory("{scheme: {name: pipedream}}");
  std::atomic<bool> stop = false;
  // While stage 1 is stuck in a forward, the others have nothing to do but to wait for it: stage 0
  // once it has begun as many mini-batches as there are stages, the later ones behind the first
  // mini-batch.
  Last first, last;
  laboratory.watch(0, [&](const Pass& pass) { first.begin(pass); });
  laboratory.watch(3, [&](const Pass& pass) { last.begin(pass); });
  laboratory.watch(1, [&](const Pass& pass) {
    if (pass.minibatch != 1) return;
    first.wait_for(3);
    last.wait_for(0);
    stop = true;
  });
  EXPECT_EQ(failure_of(laboratory, Execution::Threads, &stop).kind(), ErrorKind::Interrupted);
  EXPECT_EQ(first.minibatch(), 3);
}

}  // namespace
}  // namespace pipewright::test
