// On real devices. Labelled `gpu`; each test skips, saying so, where it has too few.
#include <gtest/gtest.h>

#include "core/experiment/trainer.h"
#include "core/runtime/device.h"
#include "core/stage/torch.h"
#include "tests/unit/device/elsewhere.h"

namespace pipewright::test {
namespace {

/// CUDA's first use must come before LibTorch's first backward, which counts the devices.
const int kDevices = cuda_device_count();

std::vector<at::Device> cuda_devices(int count) {
  std::vector<at::Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(i));
  return devices;
}

/// On one device, and on two.
class Gpu : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (kDevices < GetParam())
      GTEST_SKIP() << "needs " << GetParam() << " CUDA device(s) that LibTorch can use; there are "
                   << kDevices;
    // Or a convolution's backward adds in another order every time.
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setBenchmarkCuDNN(false);
  }
  std::vector<at::Device> devices() const { return cuda_devices(GetParam()); }
};

TEST_P(Gpu, GivesTheSameBitsInSerialAndThreadsAndTheCpusNumbersForEveryScheme) {
  for (const SchemeCase& scheme : every_scheme()) expect_equal_elsewhere(once(scheme), devices());
}

TEST_P(Gpu, GivesTheSameForConvolutionsBatchNormAndDropout) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme, "}, train.precision: float64, ",
               "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}"),
        devices());
}

TEST_P(Gpu, GivesTheSameForReplicas) {
  for (const char* scheme : {"gpipe", "pipedream"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, pipeline.stages: 2, pipeline.replicas: 2}"),
        devices());
}

TEST_P(Gpu, GivesTheSameWhereSomeStagesAreOnTheCpu) {
  std::vector<at::Device> mixed = devices();
  mixed.emplace_back(at::kCPU);
  expect_equal_elsewhere("{scheme: {name: pipedream}, train.precision: float64}", mixed);
}

TEST_P(Gpu, EvaluatesAsTheCpu) {
  auto trained = [](const std::string& changes, const std::vector<at::Device>& devices) {
    Laboratory laboratory(changes);
    Team alone;
    const Plan& plan = plan_on(laboratory, devices);
    Trainer trainer(plan, alone, nullptr, nullptr, nullptr);
    trainer.train();
    return trainer.epochs();
  };
  const std::string changes =
      "{scheme: {name: gpipe}, pipeline.execution: threads, train.precision: float64, "
      "train.epochs: 3}";
  const auto cpu = trained(changes, {at::kCPU}), there = trained(changes, devices());
  for (std::size_t epoch = 0; epoch < cpu.size(); ++epoch) {
    EXPECT_NEAR(cpu[epoch].test_loss, there[epoch].test_loss, kOtherOrder);
    EXPECT_EQ(cpu[epoch].test_accuracy, there[epoch].test_accuracy);
  }
}

INSTANTIATE_TEST_SUITE_P(OnDevices, Gpu, testing::Values(1, 2),
                         [](const auto& each) { return std::to_string(each.param); });

}  // namespace
}  // namespace pipewright::test
