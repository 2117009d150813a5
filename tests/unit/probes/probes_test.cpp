// SPDX-License-Identifier: Apache-2.0
// Probes change no bit of a training, and find the same in every execution.
#include "core/probes/probes.h"
#include "core/experiment/reading.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

std::string with_probes(const std::string& changes, const std::string& probes) {
  return concat(changes.substr(0, changes.size() - 1), ", probes: [", probes, "]}");
}

std::string probe_text(const std::string& name, int every) {
  return concat("{name: ", name, ", every: ", every, "}");
}

/// All probes that can measure the training, in the form of an experiment file.
std::string all_probes(const std::string& changes, int every) {
  std::vector<std::string> fitting;
  for (const std::string& name : Registry<Probe>::instance().names()) {
    const std::string probe = name == "delay_alignment" && changes.find("law: ") != changes.npos
                                  ? concat("{name: ", name, ", delay: 2, every: ", every, "}")
                                  : probe_text(name, every);
    try {
      static_cast<void>(read_experiment(small_document(with_probes(changes, probe))));
      fitting.push_back(probe);
    } catch (const Error&) {
    }
  }
  return join(fitting, ", ");
}

std::vector<std::string> texts_of_rows(std::vector<ProbeRow> rows) {
  sort_rows(rows);
  std::vector<std::string> texts;
  for (const ProbeRow& row : rows) {
    char value[40];
    std::snprintf(value, sizeof value, "%a", row.value);
    texts.push_back(
        concat(row.minibatch, " ", row.stage, " ", row.probe, " ", row.quantity, " ", value));
  }
  return texts;
}

/// Trains with and without probes in both executions. Returns how many rows they found.
std::size_t expect_no_bit_changed(const std::string& changes, int every, const std::string& what) {
  Laboratory laboratory(with_probes(changes, all_probes(changes, every)));
  const Plan& plan = laboratory.plan();
  std::vector<std::vector<std::string>> found;
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    const Stages plain = plan.stages(), probed = plan.stages();
    Probes probes(laboratory.experiment.probes, plan.training, laboratory.experiment.delays);
    probes.begin(0);
    const RunResult a = train(plan, plain, execution);
    const RunResult b = train(plan, probed, execution, nullptr, 0, nullptr, &probes);
    EXPECT_EQ(difference(plain, probed), "") << what;
    EXPECT_EQ(flat_losses(a), flat_losses(b)) << what;
    found.push_back(texts_of_rows(probes.take()));
  }
  EXPECT_EQ(found[0], found[1]) << what;
  return found[0].size();
}

TEST(Probes, ChangeNoBitOfAnyScheme) {
  for (const SchemeCase& scheme : every_scheme()) {
    const bool one_stage = scheme.name == "data_parallel";
    const std::string changes =
        concat("{scheme: ", scheme_text(scheme), ", pipeline.stages: ", one_stage ? 1 : 4,
               ", pipeline.microbatches: 4, dataset.train: 40}");
    EXPECT_GT(expect_no_bit_changed(changes, 2, scheme.name + scheme.options), 20U) << scheme.name;
  }
}

TEST(Probes, ChangeNoBitWithBatchNormDropoutReplicasCodecsRecomputationAndFewerBits) {
  for (const char* more :
       {", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
        ", pipeline.replicas: 2", ", pipeline.compression: {name: uniform, bits: 4}",
        ", pipeline.compression: {name: aq_sgd, bits: 4}", ", pipeline.recompute: always",
        ", pipeline.offload: always, pipeline.fetch_ahead: 0", ", train.precision: bfloat16",
        ", train.precision: float16", ", optimizer: {name: adamw, lr: 0.01}",
        ", perturb: {gradient_delay: 1, weight_noise: 0.05}"})
    for (const char* scheme : {"{name: gpipe}", "{name: pipedream}", "{name: spectrain}",
                               "{name: zb_h1}", "{name: interlocking}"}) {
      const bool float16 = std::string_view(more).find("float16") != std::string_view::npos;
      const std::string changes =
          concat("{scheme: ", scheme, ", pipeline.stages: 3",
                 ", pipeline.microbatches: 2, dataset.train: 40", more, "}");
      EXPECT_GT(expect_no_bit_changed(changes, 1, concat(scheme, more)), float16 ? 0U : 20U);
    }
}

/// With stashed weights, forward and backward read the same, noise included. Only the newest
/// weights are those without noise.
TEST(Probes, SeeNoMismatchInNoiseThatForwardAndBackwardShare) {
  Laboratory laboratory(
      "{scheme: {name: gpipe}, train.precision: float64, perturb.weight_noise: 0.3, "
      "probes: [{name: mismatch, every: 1}, {name: gradient_alignment, every: 1}]}");
  const Plan& plan = laboratory.plan();
  Probes probes(laboratory.experiment.probes, plan.training);
  probes.begin(0);
  train(plan, plan.stages(), Execution::Serial, nullptr, 0, nullptr, &probes);
  double farthest = 0;
  for (const ProbeRow& row : probes.take())
    if (row.quantity == "cosine" && row.probe == 0)
      EXPECT_NEAR(row.value, 1, tolerance::kFewOperations);
    else if (row.quantity == "cosine")
      farthest = std::max(farthest, 1 - row.value);
  EXPECT_GT(farthest, 0.001) << "the noise does turn the gradient";
}

/// PipeDream delays by 3, 2, 1 and 0 updates.
TEST(Probes, TakeADelayOfGradientsForAPartOfTheDelay) {
  const Experiment e = read_experiment(small_document(
      "{scheme: {name: pipedream}, perturb.gradient_delay: 2, probes: [{name: delay_alignment}]}"));
  EXPECT_EQ(e.delays, (std::vector{5, 4, 3, 2}));
}

TEST(Probes, OfTheWholeGradientChangeNoBitOfASerialTraining) {
  for (const char* more :
       {"", ", model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
        ", pipeline.replicas: 2", ", pipeline.recompute: always",
        ", pipeline.offload: always, pipeline.fetch_ahead: 0", ", train.precision: bfloat16",
        ", pipeline.compression: {name: uniform, bits: 4}"})
    for (const char* scheme : {"{name: pipedream}", "{name: zb_h1}", "{name: spectrain}"}) {
      Laboratory laboratory(concat(
          "{scheme: ", scheme, ", pipeline.stages: 3, pipeline.microbatches: 2", more,
          ", dataset.train: 40, probes: [{name: gradient_alignment, every: 1, global: true}]}"));
      const Plan& plan = laboratory.plan();
      const Stages plain = plan.stages(), probed = plan.stages();
      Probes probes(laboratory.experiment.probes, plan.training);
      probes.begin(0);
      static_cast<void>(train(plan, plain, Execution::Serial));
      static_cast<void>(train(plan, probed, Execution::Serial, nullptr, 0, nullptr, &probes));
      EXPECT_EQ(difference(plain, probed), "") << scheme << more;
      std::set<std::int64_t> measured;
      for (const ProbeRow& row : probes.take())
        if (row.stage == kWholeModel && row.quantity == "cosine") {
          measured.insert(row.minibatch);
          EXPECT_GT(row.value, 0.5) << scheme << more;
        }
      EXPECT_EQ(std::ssize(measured), plan.minibatches) << scheme << more;
    }
}

TEST(Probes, OfTheWholeGradientCountStagesWithoutParameters) {
  for (const char* scheme : {"{name: pipedream}", "{name: zb_h1}", "{name: gpipe}"})
    for (const char* model : {"[{linear: {out: 4}}, relu, {linear: {out: 3}}]",
                              "[relu, {linear: {out: 4}}, {linear: "
                              "{out: 3}}]",
                              "[{linear: {out: 4}}, {linear: {out: 3}}, relu]"}) {
      Laboratory laboratory(
          concat("{scheme: ", scheme, ", model: {name: sequential, input: [8], layers: ", model,
                 "}, pipeline: {stages: 3, balance: [1, 1, 1], microbatches: 2}, probes: [{name: "
                 "gradient_alignment, every: 1, global: true}]}"));
      const Plan& plan = laboratory.plan();
      const Stages stages = plan.stages();
      Probes probes(laboratory.experiment.probes, plan.training);
      probes.begin(0);
      static_cast<void>(train(plan, stages, Execution::Serial, nullptr, 0, nullptr, &probes));
      std::map<std::int64_t, int> measured;
      for (const ProbeRow& row : probes.take())
        if (row.stage == kWholeModel && row.quantity == "cosine") ++measured[row.minibatch];
      EXPECT_EQ(std::ssize(measured), plan.minibatches) << scheme << model;
      for (const auto& [minibatch, rows] : measured) EXPECT_EQ(rows, 1) << scheme << model;
    }
}

TEST(Probes, MeasureMultiplesOfTheirIntervalAcrossSchedules) {
  Laboratory laboratory("{scheme: {name: pipedream}, probes: [{name: norms, every: 4}]}");
  const Plan& plan = laboratory.plan();  // 6 mini-batches
  Probes probes(laboratory.experiment.probes, plan.training, laboratory.experiment.delays);
  const Stages stages = plan.stages();
  std::vector<std::int64_t> measured;
  for (int epoch = 0; epoch < 2; ++epoch) {
    probes.begin(epoch * plan.minibatches);
    train(plan, stages, Execution::Serial, nullptr, epoch, nullptr, &probes);
    for (const ProbeRow& row : probes.take())
      if (row.stage == 2 && row.quantity == "update") measured.push_back(row.minibatch);
  }
  EXPECT_EQ(measured, (std::vector<std::int64_t>{0, 4, 8}));
}

std::string problem_of(const std::string& changes) {
  try {
    static_cast<void>(read_experiment(small_document(changes)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Probes, AreRefusedWhereTheyCannotMeasure) {
  const auto expect = [](const std::string& changes, const std::string& message) {
    EXPECT_NE(problem_of(changes).find(message), std::string::npos) << problem_of(changes);
  };
  expect("{scheme: {name: gpipe}, probes: [{name: prediction_error}]}",
         "probes[0] prediction_error needs a scheme that predicts weights, such as spectrain; "
         "gpipe predicts none");
  expect("{probes: [{name: norms}, {name: edge_error}]}",
         "probes[1] edge_error needs a codec on an edge; pipeline.compression is none");
  expect("{probes: [{name: gradient_noise}]}",
         "probes[0] gradient_noise needs micro-batches to compare; pipeline.microbatches is 1");
  expect(
      "{pipeline.execution: threads, probes: [{name: norms}, {name: gradient_alignment, global: "
      "true}]}",
      "probes[1] gradient_alignment with global: true needs pipeline.execution: serial");
  expect("{scheme: {name: interlocking}, probes: [{name: gradient_alignment, global: true}]}",
         "probes[0] gradient_alignment with global: true needs a scheme with one loss; "
         "interlocking has losses at several stages");
  expect("{perturb.gradient_delay: 2, probes: [{name: weight_gap}]}",
         "probes[0] weight_gap knows of no gradient that a later update applies; "
         "perturb.gradient_delay is 2, expected 0");
  expect("{probes: [{name: norms, every: 0}]}", "probes[0].every is 0; expected");
  expect("{probes: [{name: norm}]}", "probes[0].name is 'norm'; expected");
  expect("{probes: [{name: norms, evry: 3}]}", "unknown option 'probes[0].evry'");
  expect("{probes: {name: norms}}", "probes is ");
  expect("{probes: [norms]}", "probes[0] is 'norms'; expected");
  expect("{probes: [~]}", "probes[0] is empty; expected a mapping, {name: …}");
  expect("{probes: [{name: norms}, ~]}", "probes[1] is empty; expected a mapping, {name: …}");
  expect(
      "{scheme: {name: delayed_sgd, delay: {law: geometric, mean: 2}}, "
      "probes: [{name: delay_alignment}]}",
      "probes[0] delay_alignment needs an option `delay` here, because the schedule has no steady");
}

TEST(Probes, OfOneNameAreRefusedWhateverTheirOptions) {
  for (const std::string& name : Registry<Probe>::instance().names())
    for (const char* more : {"", ", every: 7"}) {
      const std::string problem =
          problem_of(concat("{probes: [{name: ", name, "}, {name: ", name, more, "}]}"));
      EXPECT_NE(problem.find(concat("probes[1].name is '", name,
                                    "' a second time; expected each probe once")),
                std::string::npos)
          << problem;
    }
}

TEST(Probes, AreWrittenOutWithTheirDefaults) {
  const Experiment e = read_experiment(
      small_document("{probes: [{name: norms}, {name: delay_alignment, every: 7}]}"));
  EXPECT_EQ(to_json(*e.resolved.find("probes")),
            R"([{"name":"norms","every":50},{"name":"delay_alignment","every":7,"delay":0}])");
  const Experiment without = read_experiment(small_document());
  EXPECT_EQ(e.identity, without.identity) << "a run may be resumed with other probes";
}

}  // namespace
}  // namespace pipewright::test
