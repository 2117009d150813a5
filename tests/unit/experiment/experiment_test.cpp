// SPDX-License-Identifier: Apache-2.0
// An experiment file as types: what only several sections together can tell, and reading it back.
#include "core/experiment/experiment.h"
#include "core/experiment/catalogue.h"

#include <gtest/gtest.h>

#include "core/experiment/reading.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// The error of reading `text`, whole.
std::string experiment_refusal(const std::string& text) {
  try {
    read_experiment(parse_yaml(text, "f.yaml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    return error.what();
  }
  return "nothing is refused";
}

void expect_refused(const std::string& text, const std::string& place, const std::string& part) {
  const std::string message = experiment_refusal(text);
  EXPECT_TRUE(message.starts_with(place + ": ")) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ReadExperiment, MeasuresTheAccuracyAndWhatIsAskedForOnce) {
  const Experiment e =
      read_experiment(parse_yaml("metrics: [top5, accuracy, perplexity, top5]", "f.yaml"));
  EXPECT_EQ(e.metric_names, (std::vector<std::string>{"accuracy", "top5", "perplexity"}));
  EXPECT_EQ(e.metrics.size(), 3u);
}

TEST(ReadExperiment, RefusesMetricsThatDoNotExist) {
  expect_refused("metrics: [acuracy]", "f.yaml:1:10", "did you mean 'accuracy'?");
  expect_refused("metrics: top5", "f.yaml:1:10", "expected a list such as [top5]");
}

/// γ = μ + τ(γ_P − μ)/P, as AsyncPP has it.
TEST(ReadExperiment, GivesEachStageTheMomentumOfItsDelay) {
  const auto momenta = [](const std::string& scheme, const std::string& optimizer) {
    const Experiment e =
        read_experiment(parse_yaml(concat("model: {name: mlp, widths: [64, 9, 8, 7, 10]}\n"
                                          "pipeline: {stages: 4, microbatches: 2}\nscheme: {name: ",
                                          scheme, "}\noptimizer: {name: ", optimizer, "}"),
                                   "f.yaml"));
    std::vector<double> all;
    for (int stage = 0; stage < 4; ++stage) all.push_back(e.optimizer_of(stage).linear()->momentum);
    return all;
  };
  using Momenta = std::vector<double>;
  const char* by_delay = "sgd, momentum: 0.5, momentum_by_delay: 0.75";
  EXPECT_EQ(momenta("pipedream", by_delay), (Momenta{0.625, 0.5625, 0.5625, 0.5}));  // ⌈D/2⌉
  EXPECT_EQ(momenta("'delayed_sgd', delay: [3, 2, 1, 0]", by_delay),
            (Momenta{0.6875, 0.625, 0.5625, 0.5}));
  EXPECT_EQ(momenta("delayed_sgd, delay: 5", by_delay), Momenta(4, 0.75));
  EXPECT_EQ(momenta("gpipe", by_delay), Momenta(4, 0.5));
  EXPECT_EQ(momenta("pipedream", "nadamw, betas: [0.5, 0.9], momentum_by_delay: 0.75"),
            (Momenta{0.625, 0.5625, 0.5625, 0.5}));
  EXPECT_EQ(momenta("pipedream", "sgd, momentum: 0.5"), Momenta(4, 0.5));
}

TEST(ReadExperiment, RefusesAMomentumByDelaysThatNobodyKnows) {
  const std::string text =
      "scheme: {name: delayed_sgd, delay: {law: geometric, mean: 2}}\noptimizer: {momentum: 0.5, "
      "momentum_by_delay: ";
  expect_refused(text + "0.9}", "f.yaml:2:47", "no steady state");
  EXPECT_EQ(experiment_refusal(text + "none}"), "nothing is refused");
}

TEST(ReadExperiment, NeedsNoOptionAtAll) {
  const Experiment e = read_experiment(Value::mapping());
  EXPECT_EQ(e.name, "experiment");
  EXPECT_EQ(e.pipeline.devices, std::vector<std::string>{"cpu"});
  EXPECT_EQ(e.layout.balance.size(), 1u);
}

TEST(ReadExperiment, RefusesMoreMicroBatchesThanSamples) {
  expect_refused("loader: {batch_size: 4}\npipeline: {microbatches: 5}", "f.yaml:2:26",
                 "a mini-batch has only 4 samples");
  expect_refused(
      "loader: {batch_size: 8}\npipeline: {replicas: 2, microbatches: 5}\nscheme: {name: "
      "data_parallel}",
      "f.yaml:2:39", "only 4 samples per replica");
}

TEST(ReadExperiment, RefusesMoreReplicasThanSamples) {
  expect_refused("loader: {batch_size: 2}\npipeline: {replicas: 3}", "f.yaml:2:22",
                 "pipeline.replicas is 3, but loader.batch_size only 2");
}

TEST(ReadExperiment, RefusesAPlacementOfOtherLength) {
  expect_refused("pipeline:\n  stages: 3\n  placement: [0, 1]", "f.yaml:3:14",
                 "names the workers of 2 stages; expected one worker for each of 3 stages");
}

TEST(ReadExperiment, RefusesWorkersWithoutAStage) {
  expect_refused("pipeline:\n  stages: 2\n  placement: [0, 2]", "f.yaml:3:14",
                 "names no stage for worker 1");
}

TEST(ReadExperiment, RefusesOtherThanOneDevicePerWorker) {
  expect_refused("pipeline:\n  stages: 3\n  device: [cpu, cpu]", "f.yaml:3:11",
                 "has 2 devices for 3 workers");
  expect_refused("pipeline:\n  stages: 2\n  device: [cpu, gpu]", "f.yaml:3:17",
                 "pipeline.device[1] is 'gpu'; expected cpu, cuda");
  expect_refused("pipeline: {device: []}", "f.yaml:1:20", "empty");
}

TEST(ReadExperiment, GivesEveryWorkerOfEveryReplicaItsDevice) {
  const Experiment e = read_experiment(
      parse_yaml("pipeline: {stages: 3, replicas: 2, placement: [0, 1, 0]}", "f.yaml"));
  EXPECT_EQ(e.pipeline.devices.size(), 4u);
}

TEST(ReadExperiment, LetsTheSchemePlaceStagesWhereNobodyElseDoes) {
  const Experiment e =
      read_experiment(parse_yaml("pipeline: {stages: 4, microbatches: 2, device: [cpu, cpu]}\n"
                                 "scheme: {name: interleaved, chunks: 2}",
                                 "f.yaml"));
  EXPECT_EQ(e.layout.placement, (std::vector{0, 1, 0, 1}));
  EXPECT_EQ(e.shape(1).workers(), 2);
  expect_refused(
      "pipeline: {stages: 4, placement: [0, 0, 1, 1]}\nscheme: {name: interleaved, chunks: 2}",
      "f.yaml:1:34",
      "pipeline.placement is [0, 0, 1, 1]; interleaved with 2 stages per worker (scheme.chunks) "
      "needs [0, 1, 0, 1]");
}

TEST(ReadExperiment, RefusesAShapeTheSchemeCannotRunIn) {
  expect_refused("pipeline: {stages: 2}\nscheme: {name: data_parallel}", "f.yaml:1:20",
                 "pipeline.stages is 2; data_parallel has one stage");
  expect_refused("pipeline: {stages: 2}\nscheme: {name: pipedream_2bw}", "f.yaml:2:9",
                 "pipedream_2bw needs at least as many as pipeline.stages, 2");
}

TEST(ReadExperiment, RefusesABalanceThatDoesNotFitAtItsPlace) {
  expect_refused("pipeline:\n  stages: 2\n  balance: [1, 1]", "f.yaml:3:12", "in sum 2 layers");
  expect_refused("pipeline:\n  stages: 9", "f.yaml:2:11", "the model has 4 layers");
}

TEST(ReadExperiment, RefusesMoreMemoryThanItCountsTheBytesOf) {
  expect_refused("pipeline:\n  cut: {memory: 1e19}", "f.yaml:2:17", "expected a number from 0 to");
}

TEST(ReadExperiment, ReportsTheProblemsOfAllSectionsTogether) {
  const std::string message = experiment_refusal(
      "loader: {batch_size: 0}\nmodel: {name: nlp}\ntrain: {epoch: 3}\nscheme: {name: pipedream, "
      "widht: 2}");
  for (const char* place : {"f.yaml:1:22", "f.yaml:2:15", "f.yaml:3:9", "f.yaml:4:27"})
    EXPECT_NE(message.find(place), std::string::npos) << place << " in\n" << message;
}

TEST(ReadExperiment, ReadsItsResolvedFormBackToTheSameDigest) {
  for (const char* changes :
       {"{}", "{scheme: {name: spectrain, version: 2, velocity: geometric}}",
        "{pipeline.balance: [1, 2, 1], pipeline.stages: 3, pipeline.device: [cpu, cpu, "
        "cpu]}",
        "{optimizer: {name: adam, betas: [0.8, 0.9]}, lr_schedule: {name: multistep, milestones: "
        "[2, 5], warmup: {length: 3}}}",
        "{scheme: {name: delayed_sgd, delay: [3, 2, 1, 0]}, pipeline.placement: [0, 1, 1, 0]}",
        "{scheme: {name: interlocking, width: all}, train.precision: float64, loader.validation: "
        "8}"}) {
    const Experiment e = read_experiment(small_document(changes));
    const Experiment again = read_experiment(parse_yaml(to_yaml(e.resolved), "resolved.yaml"));
    EXPECT_EQ(again.digest, e.digest) << changes;
    EXPECT_EQ(again.resolved, e.resolved) << changes;
  }
}

TEST(ReadExperiment, GivesTheSameDigestForWhatIsTheSameExperiment) {
  const std::string digest = read_experiment(small_document()).digest;
  EXPECT_EQ(read_experiment(small_document("{name: other}")).digest, digest);
  EXPECT_EQ(read_experiment(small_document("{loader.shuffle: true}")).digest, digest)
      << "a default, spelt out";
  EXPECT_NE(read_experiment(small_document("{train.seed: 2}")).digest, digest);
}

TEST(Experiment, IsNotChangedByALayoutThatIsDecidedLater) {
  const Experiment e =
      read_experiment(small_document("{pipeline.stages: 2, pipeline.balance: time}"));
  const Experiment cut = e.with(e.cut({1, 3}));
  EXPECT_TRUE(e.layout.open());
  EXPECT_FALSE(cut.layout.open());
  EXPECT_EQ(e.resolved.find_path("pipeline.balance")->text, "time");
  EXPECT_EQ(read_experiment(cut.resolved).layout.balance, cut.layout.balance);
  EXPECT_EQ(cut.digest, e.digest) << "of the file, which leaves the cut open";
}

TEST(Experiment, HasALearningRateForEachMiniBatchAndBeyondTheEnds) {
  const auto rates = [](const std::string& schedule) {
    const Experiment e = read_experiment(
        small_document(concat("{optimizer.lr: 0.5, lr_schedule: {", schedule, "}}")));
    std::vector<double> all;  // of two epochs of two mini-batches, and of one before and one behind
    for (const int step : {-1, 0, 1, 2, 3, 4}) all.push_back(e.learning_rate(step, 2, 4));
    return all;
  };
  EXPECT_EQ(rates("name: step, size: 1, gamma: 0.5"),
            (std::vector{0.5, 0.5, 0.5, 0.25, 0.25, 0.25}));
  EXPECT_EQ(rates("name: linear, per: step"), (std::vector{0.5, 0.5, 0.375, 0.25, 0.125, 0.125}));
}

TEST(ReadExperiment, IgnoresSweepsAndTables) {
  EXPECT_EQ(read_experiment(
                parse_yaml("sweep: {grid: {train.seed: [1, 2]}}\ntable: {title: T}", "f.yaml"))
                .digest,
            read_experiment(Value::mapping()).digest);
}

TEST(ReadExperiment, NamesTheOptionsOfAPart) {
  bool found = false;
  for (const OptionInfo& info : part_options("optimizer", "sgd"))
    found = found || info.name == "momentum";
  EXPECT_TRUE(found);
  EXPECT_TRUE(part_options("optimizer", "unknown").empty());
}

}  // namespace
}  // namespace pipewright::test
