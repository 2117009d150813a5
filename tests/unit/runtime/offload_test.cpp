// SPDX-License-Identifier: Apache-2.0
// Activations that wait on the host: not a bit of the result changes, whatever the scheme, the
// execution and the model. While they are away nobody can read them: there is no memory behind.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/runtime/devices/offloaded.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

std::string offload_changes(const SchemeCase& scheme, const std::string& offload,
                            const std::string& rest) {
  const bool one_stage = scheme.name == "data_parallel";
  const int replicas = one_stage || shares_workers(scheme.name) ? 2 : 1;
  return concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
                ", pipeline.replicas: ", replicas, ", pipeline.offload: ", offload, ", ", rest,
                "}");
}

/// Against `never`: weights, buffers and losses, in both executions. Returns the number of copies.
std::ptrdiff_t expect_bits_of_offloaded(const SchemeCase& scheme, const std::string& rest) {
  Laboratory kept(offload_changes(scheme, "never", rest));
  const Stages expected = kept.plan().stages();
  const auto losses = flat_losses(train(kept.plan(), expected, Execution::Serial));
  std::ptrdiff_t copies = 0;
  for (const int ahead : {0, 1}) {
    Laboratory laboratory(
        offload_changes(scheme, concat("always, pipeline.fetch_ahead: ", ahead), rest));
    const Plan& plan = laboratory.plan();
    for (const auto& actions : plan.training.schedule.workers)
      copies += std::ranges::count(actions, ActionKind::Fetch, &Action::kind);
    for (const Execution execution : {Execution::Serial, Execution::Threads}) {
      const Stages stages = plan.stages();
      const RunResult result = train(plan, stages, execution);
      const std::string what = concat(scheme.name, scheme.options, " fetched ", ahead, " ahead, ",
                                      execution == Execution::Serial ? "serial" : "threads");
      EXPECT_EQ(difference(expected, stages), "") << what;
      EXPECT_EQ(flat_losses(result), losses) << what;
    }
  }
  return copies;
}

TEST(OffloadedTraining, IsTheSameForASchemeOfEachKind) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) {
    const bool waits = scheme.name != "interlocking";  // there each backward follows its forward
    for (const char* rest : {kSmallPerceptron, kSmallConvolutions})
      EXPECT_EQ(expect_bits_of_offloaded(scheme, rest) > 0, waits) << scheme.name;
    if (waits) expect_bits_of_offloaded(scheme, kSmallText);
  }
}

TEST(OffloadedTraining, IsTheSameForEveryScheme) {
  std::ptrdiff_t copies = 0;
  for (const SchemeCase& scheme : every_scheme())
    copies += expect_bits_of_offloaded(scheme, kSmallPerceptron);
  EXPECT_GT(copies, 1000);
}

TEST(OffloadedTraining, IsTheSameWhereReplicasShareWorkers) {
  for (const SchemeCase& scheme : schemes_that_share_workers())
    for (const char* model :
         {"", ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}"})
      EXPECT_GT(expect_bits_of_offloaded(
                    scheme, concat("pipeline.microbatches: 4, dataset.train: 40", model)),
                0)
          << scheme.name << model;
}

TEST(OffloadedTraining, IsTheSameWithBatchNormAndDropout) {
  for (const SchemeCase& scheme : first_of_each_scheme())
    for (const char* statistics : {"per_microbatch", "deferred"})
      expect_bits_of_offloaded(scheme,
                               concat(kSmallConvolutions, ", pipeline.batch_norm: ", statistics));
}

/// What the mini-batch gathers, and the statistics that wait, are no activations of a pass, also
/// where they have its number format already.
TEST(OffloadedTraining, LeavesGatheredAndStaleStatisticsOnTheDevice) {
  for (const char* precision : {"float32", "float64"})
    expect_bits_of_offloaded(
        {"gpipe", "{}"},
        concat("pipeline.microbatches: 4, dataset.train: 48, pipeline.batch_norm: deferred, "
               "perturb.stale_batch_norm: 1, train.precision: ",
               precision, ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}"));
}

TEST(OffloadedTraining, IsTheSameWhereIntegersAndMasksCross) {
  for (const SchemeCase& scheme : first_of_each_scheme())
    if (scheme.name != "interlocking")  // no heads there
      expect_bits_of_offloaded(scheme, kSmallText);
}

/// What a layer computes once and keeps is no activation of the pass that needs it first.
TEST(OffloadedTraining, IsTheSameWhereAModelKeepsTablesOfItsOwn) {
  for (const char* preset : {"gpt2", "llama"})
    for (const char* name : {"gpipe", "one_f_one_b"})
      expect_bits_of_offloaded(
          {name, "{}"},
          concat("pipeline.microbatches: 4, dataset.train: 32, model: {name: "
                 "decoder, preset: ",
                 preset,
                 ", vocabulary: 16, tokens: 8, width: 16, heads: 2, layers: 4, subspace: 8}"));
}

TEST(OffloadedTraining, IsTheSameWhereMapsSkipStages) {
  for (const char* name : {"gpipe", "pipedream", "interlocking", "spectrain"})
    expect_bits_of_offloaded(
        {name, "{}"},
        "pipeline.microbatches: 4, dataset.train: 32, loader.batch_size: 16, dataset.classes: 2, "
        "loss: {name: binary_cross_entropy}, pipeline.balance: layers, model: {name: unet, depth: "
        "2, convolutions: 1, base_channels: 4, channels: 1, size: 8}");
}

TEST(OffloadedTraining, IsTheSameWhereStagesShareWorkers) {
  for (const char* name : {"gpipe", "one_f_one_b", "pipedream"})
    for (const char* placement : {"[0, 1, 0, 1]", "[0, 0, 1, 1]"})
      expect_bits_of_offloaded(
          {name, "{}"},
          concat("pipeline.microbatches: 4, dataset.train: 24, pipeline.placement: ", placement));
}

TEST(OffloadedTraining, IsTheSameInMixedPrecisionInBothMemoryFormatsAndCompressed) {
  for (const char* rest : {"train.precision: bfloat16", "pipeline.memory_format: channels_last",
                           "pipeline.compression: {name: aq_sgd, bits: 4}"})
    for (const char* name : {"gpipe", "pipedream", "zb_h1"})
      expect_bits_of_offloaded(
          {name, "{}"},
          concat("pipeline.microbatches: 4, dataset.train: 24, model: {name: cnn, width: 0.25, "
                 "size: 8, channels: 1, classes: 3}, ",
                 rest));
}

TEST(NewStorages, AreWhatOperatorsMakeAndSomebodyHolds) {
  const at::Tensor before = at::ones({8});
  at::Tensor kept, view;
  WeakStorages noted;
  {
    const NewStorages storages(at::kCPU);
    kept = before + 1;
    view = before.view({2, 4});
    const at::Tensor gone = before.mul(2);
    const at::DisableRecordFunctionGuard unseen;
    view = view + 1;
    noted = storages.noted();
  }
  ASSERT_EQ(noted.size(), 2U) << "kept, and what is gone now";
  EXPECT_EQ(noted[0].lock().get(), kept.storage().unsafeGetStorageImpl());
  EXPECT_EQ(noted[1].lock(), nullptr);
}

/// Whose kernel lets another operator write into what it will return.
TEST(NewStorages, AreWhatAnOperatorMakesThroughOthers) {
  const at::Tensor input = at::ones({2, 4}), weight = at::ones({3, 4}), bias = at::ones({3});
  const NewStorages storages(at::kCPU);
  const at::Tensor output = at::linear(input, weight, bias);
  const WeakStorages noted = storages.noted();
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted[0].lock().get(), output.storage().unsafeGetStorageImpl());
  EXPECT_EQ(storages.bytes(), 24);
}

TEST(Offloaded, HasNoBytesOnTheDeviceUntilItIsFetched) {
  WeakStorages noted;
  at::Tensor value, expected;
  {
    const NewStorages storages(at::kCPU);
    value = at::arange(100, at::kDouble).mul(3);
    noted = storages.noted();
  }
  const at::Tensor part = value.slice(0, 10, 20);
  expected = part.clone();
  Offloaded away(noted);
  EXPECT_EQ(value.storage().nbytes(), 800U) << "it still says its size";
  EXPECT_EQ(value.storage().data(), nullptr) << "who reads it now fails";
  away.fetch();
  away.await();
  EXPECT_TRUE(at::equal(part, expected));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(value.data_ptr()) % 64, 0U);
}

}  // namespace
}  // namespace pipewright::test
