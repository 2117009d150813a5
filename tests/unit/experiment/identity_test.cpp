// SPDX-License-Identifier: Apache-2.0
// Which experiments a checkpoint may pass between.
#include "core/experiment/identity.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

std::string identity(const std::string& changes) {
  return Laboratory(changes).experiment.identity;
}

TEST(Identity, IsKeptByNameOutputAndLayout) {
  for (const char* changes :
       {"{name: x}", "{output.steps: false}", "{pipeline.stages: 2}", "{pipeline.replicas: 2}",
        "{pipeline.balance: layers}", "{pipeline.placement: [0, 0, 1, 1]}",
        "{pipeline.execution: threads}", "{pipeline.threads: 2}",
        "{pipeline.device: [cpu, cpu, cpu, cpu]}", "{pipeline.timeout: 2}",
        "{pipeline.offload: always, pipeline.fetch_ahead: 2}", "{train.epochs: 2}"})
    EXPECT_EQ(identity(changes), identity("{}")) << changes;
}

TEST(Identity, IsChangedByWhatIsLearnedAndHow) {
  for (const char* changes :
       {"{train.seed: 2}", "{optimizer.lr: 0.1}", "{scheme: {name: gpipe}}",
        "{pipeline.microbatches: 2}", "{loader.batch_size: 4}", "{train.precision: float64}",
        "{train.checkpoint: {every: 3, unit: minibatch}}", "{train.drain: never}",
        "{train.numerics: fast}", "{train.numerics: {matmul: tf32}}"})
    EXPECT_NE(identity(changes), identity("{}")) << changes;
}

/// The resolved experiment as a program without the section would have written it.
Value without_perturb(const Experiment& experiment) {
  Value older = experiment.resolved;
  EXPECT_EQ(std::erase_if(older.fields, [](const auto& field) { return field.first == "perturb"; }),
            1U);
  return older;
}

TEST(Identity, IsThatOfEarlierProgramsWherePerturbIsIdle) {
  for (const char* idle : {"{}", "{perturb: {}}", "{perturb: {gradient_delay: 0}}",
                           "{perturb: {weight_noise: 0}}", "{perturb: {weight_noise: 0.0}}"}) {
    const Laboratory laboratory(idle);
    const Experiment& e = laboratory.experiment;
    const Value older = without_perturb(e);
    EXPECT_EQ(e.digest, config_digest(older)) << idle;
    EXPECT_EQ(e.digest, Laboratory("{}").experiment.digest) << idle;
    EXPECT_EQ(e.identity, identity_of(older, {})) << idle;
    EXPECT_EQ(digest_without_seed(e.resolved), digest_without_seed(older)) << idle;
    EXPECT_EQ(identity_changes(older, e.resolved, {}), "") << idle;
  }
}

TEST(Identity, IsThatOfEarlierProgramsWhereNothingIsOffloaded) {
  for (const char* idle : {"{}", "{pipeline.offload: never}", "{pipeline.fetch_ahead: 3}"}) {
    const Laboratory laboratory(idle);
    Value older = laboratory.experiment.resolved;
    EXPECT_EQ(std::erase_if(older.find("pipeline")->fields,
                            [](const auto& field) {
                              return field.first == "offload" || field.first == "fetch_ahead";
                            }),
              2U);
    EXPECT_EQ(laboratory.experiment.digest, config_digest(older)) << idle;
    EXPECT_EQ(laboratory.experiment.identity, identity_of(older, {})) << idle;
  }
  EXPECT_NE(Laboratory("{pipeline.offload: always}").experiment.digest,
            Laboratory("{}").experiment.digest);
}

TEST(Identity, IsThatOfEarlierProgramsWithoutGradientRules) {
  const Laboratory plain("{}"), ruled("{gradient_rules: [{name: clip}]}");
  Value older = plain.experiment.resolved;
  EXPECT_EQ(std::erase_if(older.fields,
                          [](const auto& field) { return field.first == "gradient_rules"; }),
            1U);
  EXPECT_EQ(plain.experiment.digest, config_digest(older));
  EXPECT_EQ(plain.experiment.identity, identity_of(older, {}));
  EXPECT_NE(plain.experiment.digest, ruled.experiment.digest);
  EXPECT_NE(plain.experiment.identity, ruled.experiment.identity);
}

/// Digests that 1.0.0-rc.1 wrote into run.json. An option that is new since then must change none
/// of them while it has its default, or unfinished runs cannot be resumed by a newer program.
TEST(Identity, IsThatOfTheFirstCandidateForEveryOptimizer) {
  const std::vector<std::pair<const char*, const char*>> digests{
      {"adam", "45cab54362e783f3"},    {"adamw", "60503f7daecff7ed"},
      {"adan", "35364171ff19522a"},    {"lion", "e8ccacd3183c7df6"},
      {"muon", "946aa0fc6e02314f"},    {"nadamw", "7a9e4619abe48f74"},
      {"rmsprop", "7937804f883c812c"}, {"sgd", "62607ad71c55d2fa"},
      {"soap", "7dd191eca33cd632"},
  };
  for (const auto& [optimizer, digest] : digests)
    EXPECT_EQ(
        read_experiment(parse_yaml(concat("{dataset: {name: digits}, model: {name: mlp, widths: "
                                          "[64, 10]}, train: {epochs: 1}, optimizer: {name: ",
                                          optimizer, "}}"),
                                   "f.yaml"))
            .digest,
        digest)
        << optimizer;
}

TEST(Identity, IsThatOfEarlierProgramsWhereAllStagesHaveOneMomentum) {
  const Laboratory plain("{}"), by_delay("{optimizer.momentum_by_delay: 0.99}");
  Value older = plain.experiment.resolved;
  EXPECT_EQ(std::erase_if(older.find("optimizer")->fields,
                          [](const auto& field) { return field.first == "momentum_by_delay"; }),
            1U);
  EXPECT_EQ(plain.experiment.digest, config_digest(older));
  EXPECT_EQ(plain.experiment.identity, identity_of(older, {}));
  EXPECT_NE(plain.experiment.digest, by_delay.experiment.digest);
  EXPECT_NE(plain.experiment.identity, by_delay.experiment.identity);
}

TEST(Identity, IsThatOfEarlierProgramsWithoutAnEventFile) {
  const Laboratory plain("{}"), shown("{output: {tensorboard: true}}");
  Value older = plain.experiment.resolved;
  EXPECT_EQ(std::erase_if(older.find("output")->fields,
                          [](const auto& field) { return field.first == "tensorboard"; }),
            1U);
  EXPECT_EQ(plain.experiment.digest, config_digest(older));
  EXPECT_NE(plain.experiment.digest, shown.experiment.digest);
  EXPECT_EQ(plain.experiment.identity, shown.experiment.identity);
}

TEST(Identity, IsChangedByEachPerturbation) {
  for (const char* option : {"gradient_delay: 1", "weight_noise: 0.001"}) {
    const Laboratory laboratory(concat("{perturb: {", option, "}}"));
    const Experiment& e = laboratory.experiment;
    EXPECT_NE(e.identity, identity("{}")) << option;
    EXPECT_NE(e.digest, Laboratory("{}").experiment.digest) << option;
    EXPECT_NE(digest_without_seed(e.resolved), digest_without_seed(without_perturb(e))) << option;
  }
}

TEST(Identity, KnowsOfAPathOnlyThatItIsGiven) {
  const auto of = [](const char* file) {
    return identity(concat("{model.weights: '", file, "'}"));
  };
  EXPECT_EQ(of("/here/weights.safetensors"), of("/there/weights.safetensors"));
  EXPECT_NE(of("/here/weights.safetensors"), of(""));
}

TEST(IdentityChanges, NamesOptionsAndTheirValues) {
  const auto changes = [](const std::string& before, const std::string& now) {
    return identity_changes(Laboratory(before).experiment.resolved,
                            Laboratory(now).experiment.resolved, {});
  };
  EXPECT_EQ(changes("{}", "{name: x, train.epochs: 9, pipeline.stages: 2}"), "");
  EXPECT_EQ(changes("{optimizer.lr: 0.1}", "{optimizer.lr: 0.05, train.seed: 2}"),
            "optimizer.lr 0.1 → 0.05, train.seed 1 → 2");
  EXPECT_EQ(changes("{scheme: {name: gpipe}}", "{scheme: {name: pipedream}}"),
            "scheme.name \"gpipe\" → \"pipedream\"");
  EXPECT_EQ(changes("{gradient_rules: [{name: clip, norm: 1}]}",
                    "{gradient_rules: [{name: clip, norm: 2}]}"),
            "gradient_rules.0.norm 1.0 → 2.0");
}

TEST(ChangesBetween, AreTheFirstFewAndACount) {
  const auto of = [](int value) {
    Value all = Value::mapping();
    for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"})
      all.at_or_add(key) = Value::of(value);
    return all;
  };
  EXPECT_EQ(changes_between(of(1), of(1)), "");
  EXPECT_EQ(changes_between(of(1), of(2)),
            "a 1 → 2, b 1 → 2, c 1 → 2, d 1 → 2, e 1 → 2, f 1 → 2 and 2 more");
}

TEST(LayoutChanges, NamesWhatMayChangeTheBits) {
  auto layout = [](const std::string& changes) {
    return layout_of(Laboratory(changes).experiment.resolved);
  };
  EXPECT_EQ(layout_changes(layout("{}"), layout("{}")), "");
  EXPECT_EQ(layout_changes(layout("{}"), layout("{pipeline.execution: threads}")), "");
  EXPECT_EQ(layout_changes(layout("{}"), layout("{pipeline.timeout: 2}")), "");
  EXPECT_EQ(layout_changes(layout("{}"), layout("{pipeline.stages: 2, pipeline.replicas: 2}")),
            "pipeline.stages 4 → 2, pipeline.replicas 1 → 2");
}

TEST(LayoutChanges, TakesARunOlderThanMemoryFormatsForContiguous) {
  auto layout = [](const std::string& changes) {
    return layout_of(Laboratory(changes).experiment.resolved);
  };
  Value before = layout("{}");
  std::erase_if(before.fields, [](const auto& field) { return field.first == "memory_format"; });
  EXPECT_EQ(layout_changes(before, layout("{}")), "");
  EXPECT_EQ(layout_changes(before, layout("{pipeline.memory_format: channels_last}")),
            "pipeline.memory_format nothing → \"channels_last\"");
}

}  // namespace
}  // namespace pipewright::test
