// SPDX-License-Identifier: Apache-2.0
// What `pipewright profile` measures.
#include "core/measuring/profiling.h"
#include "core/experiment/reading.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include "core/config/merge.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

Experiment experiment(const std::string& text) {
  return read_experiment(parse_yaml(text, "f.yaml"));
}

Profile profiled(const std::string& text) {
  return measure(experiment(text), {.repetitions = 1});
}

/// Linear layers 12 → 16 → 10 with a tanh between, 8 samples.
constexpr const char* kMlp =
    "{dataset: {name: synthetic}, model: {name: mlp, widths: [12, 16, 10], activation: tanh}, "
    "loader: {batch_size: 32}, pipeline: {microbatches: 4}}";

TEST(Profiling, CountsBytesAndOperationsOfAMicroBatch) {
  const Profile profile = profiled(kMlp);
  EXPECT_EQ(profile.model, "mlp");
  EXPECT_EQ(profile.samples, 8);
  EXPECT_EQ(profile.input_bytes, 8 * 12 * 4);
  ASSERT_EQ(profile.layers.size(), 2U);
  const LayerCost& first = profile.layers[0];
  EXPECT_EQ(first.name, "0");
  EXPECT_EQ(first.flops, 2 * 8 * 12 * 16);
  EXPECT_EQ(first.output_bytes, 8 * 16 * 4);
  EXPECT_EQ(first.parameters, 12 * 16 + 16);
  EXPECT_EQ(first.parameter_bytes, 4 * (12 * 16 + 16));
}

TEST(Profiling, CountsWhatALayerKeepsForItsBackward) {
  const Profile profile = profiled(kMlp);
  // tanh keeps its output, which is also what the second layer keeps: once
  EXPECT_EQ(profile.layers[0].activation_bytes, 8 * 16 * 4);
  // the log-softmax, the logits, and the sum of the weights
  EXPECT_EQ(profile.layers[1].activation_bytes, 8 * 10 * 4 + 8 * 10 * 4 + 4);
}

TEST(Profiling, MeasuresEveryPass) {
  const Profile profile = profiled(kMlp);
  EXPECT_TRUE(profile.timed);
  for (const LayerCost& layer : profile.layers) {
    EXPECT_GT(layer.forward, 0);
    EXPECT_GT(layer.backward, 0);
    EXPECT_GT(layer.backward_weight, 0);
    EXPECT_GT(layer.update, 0);
  }
  EXPECT_EQ(profile.layers[0].backward_input, 0);  // nobody asks for the model's input
  EXPECT_GT(profile.layers[1].backward_input, 0);
}

TEST(Profiling, KnowsAStaleProfile) {
  const Profile profile = profiled(kMlp);
  EXPECT_EQ(misfit(profile, experiment(kMlp), at::kCPU), "");
  EXPECT_EQ(misfit(profile, experiment(kMlp), at::kMeta),
            "it was measured on cpu, this experiment runs on meta");
  const auto changed = [&](const std::string& key, const std::string& value) {
    Value document = parse_yaml(kMlp, "f.yaml");
    Problems problems;
    set_path(document, key, parse_yaml(value, "--set"), problems);
    problems.throw_if_any();
    return misfit(profile, read_experiment(document), at::kCPU);
  };
  EXPECT_EQ(changed("loader.batch_size", "64"),
            "it is of micro-batches of 8 samples, this experiment has 16");
  EXPECT_EQ(changed("model.widths", "[12, 8, 10]"),
            "it is of the same model with other options or an imported module that has changed, or "
            "of another loss or optimizer");
  EXPECT_EQ(changed("pipeline.stages", "2"), "");
  EXPECT_EQ(changed("optimizer.lr", "0.5"), "");
}

TEST(Profiling, CountsABillionParametersWithoutMemoryForThem) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const Profile profile = measure(
      experiment(
          "{dataset: {name: synthetic}, model: {name: amoebanet_d, cells: 72, filters: 512}}"),
      {.device = at::kMeta});
  getrusage(RUSAGE_SELF, &after);
  std::int64_t parameters = 0;
  for (const LayerCost& layer : profile.layers) parameters += layer.parameters;
  EXPECT_EQ(parameters, 1'844'858'344);
  EXPECT_FALSE(profile.timed);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200 * 1024) << "KiB";
}

}  // namespace
}  // namespace pipewright::test
