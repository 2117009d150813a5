// SPDX-License-Identifier: Apache-2.0
// On real devices. Labelled `gpu`; each test skips, saying so, where it has too few.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/codecs/edge_coding.h"
#include "core/codecs/kinds/sort_quantization_device.h"
#include "core/codecs/loops/sort_quantization_code.h"
#include "core/runtime/devices/device.h"
#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/device/elsewhere.h"
#include "tests/unit/skips.h"
#include "tests/unit/tolerances.h"

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
    if (kDevices < 1) PIPEWRIGHT_LACKS("gpu") << "LibTorch can use no CUDA device";
    if (kDevices < GetParam()) PIPEWRIGHT_LACKS("second-gpu") << "LibTorch can use one CUDA device";
  }
  std::vector<at::Device> devices() const { return cuda_devices(GetParam()); }
};

TEST_P(Gpu, GivesTheSameBitsInSerialAndThreadsAndTheCpusNumbersForEveryScheme) {
  for (const SchemeCase& scheme : every_scheme()) expect_equal_elsewhere(once(scheme), devices());
}

TEST_P(Gpu, GivesTheSameBitsWhereReplicasShareWorkers) {
  for (const SchemeCase& scheme : schemes_that_share_workers())
    expect_equal_elsewhere(once(scheme), devices());
}

TEST_P(Gpu, GivesTheSameForConvolutionsBatchNormAndDropout) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme, "}, train.precision: float64, ",
               "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}"),
        devices());
}

TEST_P(Gpu, GivesTheSameForImagesInChannelsLastMemory) {
  for (const char* layout : {"pipeline.stages: 4", "pipeline.stages: 2, pipeline.replicas: 2"})
    expect_equal_elsewhere(
        concat("{scheme: {name: pipedream}, train.precision: float64, ", layout,
               ", pipeline.memory_format: channels_last, model: {name: cnn, width: 0.125, size: 8, "
               "channels: 1, classes: 3}}"),
        devices());
}

TEST_P(Gpu, GivesTheSameForReplicas) {
  for (const char* scheme : {"gpipe", "pipedream"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, pipeline.stages: 2, pipeline.replicas: 2}"),
        devices());
}

TEST_P(Gpu, GivesTheSameWhereActivationsWaitOnTheHost) {
  for (const char* scheme : {"gpipe", "pipedream", "zb_h1"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, pipeline.microbatches: 4, pipeline.offload: always, "
               "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}"),
        devices());
}

/// Small models of every kind of layer.
constexpr std::array kModels{
    "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
    "model: {name: vgg16, width: 0.0625, classes: 3}, loader.batch_size: 4, dataset.train: 12",
    "model: {name: resnet18, width: 0.125, size: 32, classes: 3}, dataset.train: 16",
    "model: {name: gpt, vocabulary: 16, tokens: 8, width: 16, heads: 2, layers: 4}",
    "model: {name: gpt, vocabulary: 16, tokens: 8, width: 16, heads: 2, layers: 4, tie: same}",
    "model: {name: gpt, vocabulary: 16, tokens: 8, width: 16, heads: 2, layers: 4, tie: late}",
    "model: {name: decoder, vocabulary: 16, tokens: 8, width: 16, heads: 4, kv_heads: 2, layers: "
    "4}",
    "model: {name: decoder, vocabulary: 16, tokens: 8, width: 16, heads: 4, layers: 4, subspace: "
    "4}",
    "model: {name: transformer, vocabulary: 16, tokens: 8, width: 16, heads: 2, blocks: 2}",
    "model: {name: residual_lstm, vocabulary: 16, tokens: 8, width: 16}",
    "model: {name: gnmt8, vocabulary: 16, tokens: 8, width: 16}"};

TEST_P(Gpu, GivesTheSameBitsInSerialAndThreadsForEveryModelInEveryFormat) {
  for (const char* model : kModels)
    for (const char* precision : {"float32", "bfloat16", "float16"})
      expect_equal_ways(concat("{scheme: {name: spectrain}, optimizer.lr: 0.001, train.precision: ",
                               precision, ", ", model, "}"),
                        devices());
}

TEST_P(Gpu, GivesTheSameBitsWhereThreadsFactorizeMatrices) {
  expect_equal_ways("{scheme: {name: pipedream}, optimizer: {name: soap, lr: 0.001}}", devices());
}

TEST_P(Gpu, GivesTheSameWhereGroupsOfParametersHaveOptimizers) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme, "}, train.precision: float64, optimizer: {name: sgd, ",
               "lr: 0.05, momentum: 0.9, groups: [{match: '*.bias', name: adam, lr: 0.01}]}}"),
        devices());
}

TEST_P(Gpu, GivesTheSameOfADisturbedTraining) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain"})
    expect_equal_elsewhere(
        concat("{scheme: {name: ", scheme,
               "}, train.precision: float64, perturb: {gradient_delay: 2, weight_noise: 0.1}}"),
        devices());
}

TEST_P(Gpu, GivesTheSameWhereSomeStagesAreOnTheCpu) {
  std::vector<at::Device> mixed = devices();
  mixed.emplace_back(at::kCPU);
  expect_equal_elsewhere("{scheme: {name: pipedream}, train.precision: float64}", mixed);
}

TEST_P(Gpu, LaunchesGraphsThatGiveTheSameBits) {
  const std::string convolutions =
      ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3, dropout: 0}";
  const std::string attention =
      ", model: {name: encoder, layers: 4, width: 8, heads: 2, feed_forward: 12, tokens: 5, "
      "dropout: 0}, pipeline.balance: layers";
  for (const SchemeCase& scheme : scheme_of_each_kind())
    for (const std::string& more :
         {convolutions, convolutions + ", train.precision: bfloat16", attention}) {
      const std::string changes = long_training(scheme_text(scheme), more);
      const auto graphs = cuda_graphs(devices().front());
      for (int training = 0; training < 2; ++training) {  // the second records into the same pools
        const GraphsUsed used = expect_same_with_graphs(changes, devices().front(), *graphs);
        if (scheme.name != "pipemare") {
          EXPECT_GT(used.rounds, 0) << changes << ": " << used.refusal;
        }
      }
    }
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
    EXPECT_NEAR(cpu[epoch].test_loss, there[epoch].test_loss, tolerance::kTrainedElsewhere);
    EXPECT_EQ(cpu[epoch].test_accuracy, there[epoch].test_accuracy);
  }
}

// ---- sort quantization: kernels, or LibTorch's operators where they were not built ----

/// Values with ties, zeros of both signs, denormals and large ones.
std::vector<at::Tensor> quantised_tensors() {
  at::manual_seed(1);
  std::vector<at::Tensor> all;
  for (const std::int64_t n : {1, 3, 8, 1000, 4097, 300'001}) {
    const at::Tensor x = at::randn({n});
    for (const at::Tensor& each :
         {x, x.relu(), (4 * x).clamp(0, 6), (2 * x).round(), at::full({n}, -3.25), x * 1e-43,
          x.sign() * (12 * x.abs()).exp(), x.where(x > 0, at::full({}, -0.0))})
      all.push_back(each.contiguous());
  }
  return all;
}

TEST_P(Gpu, SortQuantizationGivesTheBytesAndTheValuesOfTheCpu) {
  for (const at::Tensor& x : quantised_tensors())
    for (const auto& [bits, split] : {std::pair{6, 2}, {3, 1}, {9, 3}, {12, 4}, {8, 0}, {4, 6}})
      for (const auto& [container, sampled] :
           {std::pair{false, false}, {true, false}, {false, true}}) {
        const SortQuantization settings{
            .bits = bits, .split = split, .container = container, .sampled = sampled};
        const std::span<const float> values(x.const_data_ptr<float>(),
                                            static_cast<std::size_t>(x.numel()));
        const at::Tensor expected = at::empty({settings.payload_bytes(x.numel())}, at::kByte);
        const std::span<std::byte> bytes(static_cast<std::byte*>(expected.mutable_data_ptr()),
                                         expected.nbytes());
        encode_groups(settings, *find_groups(settings, values), values, bytes);
        at::Tensor decoded = at::empty_like(x);
        decode_quantized(bytes, {decoded.mutable_data_ptr<float>(), values.size()});

        const at::Tensor there = x.to(devices().back());
        const at::Tensor payload = at::empty({expected.numel()}, there.options().dtype(at::kByte));
        encode_on_device(settings, there, payload);
        EXPECT_TRUE(payload.cpu().equal(expected))
            << bits << ", " << split << ", container " << container << ", sampled " << sampled
            << ", n " << x.numel();
        const at::Tensor back = at::empty_like(there);
        decode_on_device(settings, payload, back);
        EXPECT_TRUE(back.cpu().equal(decoded)) << bits << ", " << split << ", n " << x.numel();
      }
}

TEST_P(Gpu, SortQuantizationLosesNoValueThatIsNotFinite) {
  for (const float odd : {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY})
    for (const bool sampled : {false, true}) {
      const SortQuantization settings{.sampled = sampled};
      at::Tensor x = at::randn({10'000}, at::TensorOptions(devices().back()));
      x[77] = odd;
      const at::Tensor payload =
          at::empty({settings.payload_bytes(x.numel())}, x.options().dtype(at::kByte));
      encode_on_device(settings, x, payload);
      decode_on_device(settings, payload, x);
      EXPECT_TRUE(x.isnan().all().item<bool>()) << odd;
    }
}

INSTANTIATE_TEST_SUITE_P(OnDevices, Gpu, testing::Values(1, 2),
                         [](const auto& each) { return std::to_string(each.param); });

}  // namespace
}  // namespace pipewright::test
