// SPDX-License-Identifier: Apache-2.0
// Schemes that are the same algorithm in some shape learn the same bits there, and what must not
// matter to a training does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// All that makes pipelines hard: batch norm, dropout, momentum. It has 8 layers.
constexpr const char* kCnn =
    "model: {name: cnn, width: 0.25, size: 8, channels: 1, classes: 3}, pipeline.balance: layers, "
    "pipeline.stages: 3, train.epochs: 2, dataset.train: 48, dataset.test: 8";

struct Learned {
  std::vector<std::pair<std::string, at::Tensor>> state;  ///< parameters and buffers
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::vector<double>> losses;  ///< of each mini-batch
};

/// Changes of dotted keys. Later ones stand in for earlier ones.
using Changes = std::vector<std::string>;

std::string joined(const Changes& changes) {
  std::map<std::string, std::string> last;
  for (const std::string& each : changes)
    for (const auto& [key, value] : parse_yaml(concat("{", each, "}"), "changes.yaml").fields)
      last[key] = to_json(value);
  std::string all;
  for (const auto& [key, value] : last) all += concat(all.empty() ? "{" : ", ", key, ": ", value);
  return all + "}";
}

Changes operator+(Changes changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

/// What a whole training leaves.
Learned learned(const Changes& changes) {
  Laboratory laboratory(joined(changes));
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  Learned result;
  trainer.collect_losses(result.losses);
  trainer.train();
  result.state = state_of(trainer.stages());
  for (const auto& stage : trainer.stages())
    for (auto& named : stage->named_parameters()) result.parameters.push_back(named);
  return result;
}

using Named = std::vector<std::pair<std::string, at::Tensor>>;

bool is_of_a_head(const std::pair<std::string, at::Tensor>& named) {
  return named.first.starts_with("heads.");
}

Named without_heads(Named all) {
  std::erase_if(all, is_of_a_head);
  return all;
}

/// The first name that is not there twice with the same bits, or "".
std::string first_difference(const Named& a, const Named& b) {
  if (a.size() != b.size()) return "another number of tensors";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].first != b[i].first || !at::equal(a[i].second, b[i].second)) return a[i].first;
  return "";
}

std::string other_bits(const Learned& a, const Learned& b) {
  return first_difference(a.state, b.state);
}

/// One epoch of kCnn in shapes that every_scheme() does not have.
std::vector<Changes> other_shapes() {
  const std::filesystem::path zbv = source_dir() / "tests/golden/schedule/pytorch_zbv.csv";
  std::vector<Changes> all;
  for (const std::string& shape :
       {concat("scheme: {name: csv_schedule, file: '", zbv.string(),
               "'}, pipeline.stages: 4, pipeline.microbatches: 4"),
        std::string("scheme: {name: delayed_sgd, delay: [3, 1, 2]}"),
        std::string("scheme: {name: pipemare, annealing: 8, warmup: 4}, pipeline.microbatches: 2"),
        std::string("scheme: {name: pipeoptim}, optimizer: {name: adam}, pipeline.microbatches: 2"),
        std::string("scheme: {name: xpipe}, optimizer: {name: adamw}, pipeline.microbatches: 2")})
    all.push_back({kCnn, "train.epochs: 1", shape});
  return all;
}

/// The schemes with all of their options on a multilayer perceptron, the first of each on kCnn.
std::vector<Changes> trainings_of(const std::vector<SchemeCase>& schemes) {
  std::vector<Changes> all;
  std::string before;
  for (const SchemeCase& scheme : schemes) {
    const bool one_stage = scheme.name == "data_parallel";
    const std::string shape = concat(
        "scheme: ", scheme_text(scheme), ", train.epochs: 1, pipeline.microbatches: 4",
        ", pipeline.stages: ", one_stage ? 1 : 4, ", pipeline.replicas: ", one_stage ? 2 : 1);
    all.push_back({"dataset.train: 40", shape});
    if (scheme.name != std::exchange(before, scheme.name)) all.push_back({kCnn, shape});
  }
  return all;
}

std::vector<Changes> every_training() {
  std::vector<Changes> all = other_shapes();
  std::ranges::copy(trainings_of(every_scheme()), std::back_inserter(all));
  return all;
}

TEST(Identities, OneStageOfAnySchemeIsModelParallelism) {
  for (const char* optimizer : {"{name: sgd, lr: 0.02, momentum: 0.9}", "{name: adam, lr: 0.002}",
                                "{name: sgd, lr: 0.02}"}) {
    const Changes one_stage{kCnn, "pipeline.stages: 1, train.epochs: 1",
                            concat("optimizer: ", optimizer)};
    const Learned plain = learned(one_stage + "scheme: {name: model_parallel}");
    for (const char* scheme : {"{name: gpipe}",
                               "{name: one_f_one_b}",
                               "{name: seq1f1b}",
                               "{name: data_parallel}",
                               "{name: pipedream}",
                               "{name: pipedream, weight_stashing: false}",
                               "{name: pipedream, vertical_sync: true}",
                               "{name: spectrain, version: 1}",
                               "{name: spectrain, version: 2}",
                               "{name: pipeoptim}",
                               "{name: xpipe}",
                               "{name: delayed_sgd, delay: 0}",
                               "{name: interlocking, width: 1}",
                               "{name: interlocking, width: all}",
                               "{name: interleaved}",
                               "{name: zb_h1}",
                               "{name: zb_h2}",
                               "{name: pipemare}",
                               "{name: zb_v}",
                               "{name: v_half}",
                               "{name: v_min}",
                               "{name: hanayo}",
                               "{name: dualpipe_v}",
                               "{name: paci}",
                               "{name: lwp}",
                               "{name: features_replay}"})
      EXPECT_EQ(other_bits(plain, learned(one_stage + concat("scheme: ", scheme))), "")
          << scheme << " with " << optimizer;
  }
}

TEST(Identities, AFlushAfterOneMicroBatchIsModelParallelism) {
  const Learned plain = learned({kCnn, "scheme: {name: model_parallel}"});
  for (const char* scheme : {"gpipe", "one_f_one_b", "seq1f1b", "interleaved", "zb_h1", "zb_h2",
                             "zb_v", "v_half", "v_min", "hanayo", "dualpipe_v"})
    EXPECT_EQ(other_bits(plain, learned({kCnn, concat("scheme: {name: ", scheme, "}")})), "")
        << scheme;
}

TEST(Identities, InterlockingOverAllStagesIsModelParallelism) {
  const Learned plain = learned({kCnn, "scheme: {name: model_parallel}"});
  for (const char* width : {"all", "3"})
    for (const bool heads : {true, false}) {
      const Learned other =
          learned({kCnn, concat("scheme: {name: interlocking, width: ", width,
                                ", train_unused_heads: ", heads ? "true" : "false", "}")});
      EXPECT_EQ(std::ranges::any_of(other.state, is_of_a_head), heads) << width;
      EXPECT_EQ(first_difference(plain.state, without_heads(other.state)), "") << width << heads;
    }
}

TEST(Identities, DelaysOfPipeDreamArePipeDream) {
  EXPECT_EQ(other_bits(learned({kCnn, "scheme: {name: pipedream}"}),
                       learned({kCnn, "scheme: {name: delayed_sgd, delay: [2, 1, 0]}"})),
            "");
}

TEST(Identities, TwoBufferedWeightsAreOneStepOfDelay) {
  for (const char* shape : {"pipeline.microbatches: 3", "pipeline.microbatches: 4"})
    for (const char* optimizer :
         {"{name: sgd, lr: 0.05, momentum: 0.9}", "{name: adam, lr: 0.01}"}) {
      const Changes base{kCnn, shape, concat("optimizer: ", optimizer)};
      EXPECT_EQ(other_bits(learned(base + "scheme: {name: pipedream_2bw}"),
                           learned(base + "scheme: {name: delayed_sgd, delay: 1}")),
                "")
          << shape << optimizer;
    }
}

TEST(Identities, LinearWeightPredictionAtTheDelayIsSpecTrainTwo) {
  for (const char* shape : {"pipeline.stages: 3", "pipeline.stages: 4, pipeline.microbatches: 2"})
    EXPECT_EQ(
        other_bits(learned({kCnn, shape, "scheme: {name: lwp}"}),
                   learned({kCnn, shape, "scheme: {name: spectrain, version: 2, s_mode: exact}"})),
        "")
        << shape;
}

/// PipeMare is a combination but for its correction of backwards and for how its rates begin.
TEST(Identities, PipeMareWithoutItsTechniquesIsPipeDreamWithoutStashing) {
  for (const char* microbatches : {"pipeline.microbatches: 1", "pipeline.microbatches: 2"}) {
    const Changes base{kCnn, microbatches};
    EXPECT_EQ(
        other_bits(learned(base + "scheme: {name: pipemare, annealing: 0, correction: false}"),
                   learned(base + "scheme: {name: pipedream, weight_stashing: false}")),
        "")
        << microbatches;
  }
}

TEST(Identities, PipeMareThatStaysInItsWarmUpIsOneFOneB) {
  const Changes base{kCnn, "pipeline.microbatches: 2"};
  EXPECT_EQ(other_bits(learned(base + "scheme: {name: pipemare, warmup: 1000}"),
                       learned(base + "scheme: {name: one_f_one_b}")),
            "");
}

TEST(Identities, AMomentumByDelayThatIsTheMomentumChangesNothing) {
  for (const char* scheme :
       {"{name: pipedream}", "{name: spectrain}", "{name: delayed_sgd, delay: 7}"})
    for (const char* optimizer : {"sgd, lr: 0.02, momentum: 0.9", "nadamw, lr: 0.002",
                                  "adam, lr: 0.002, betas: [0.9, 0.99]"}) {
      const Changes base{kCnn, "train.epochs: 1", concat("scheme: ", scheme)};
      const auto with = [&](const char* more) {
        return learned(base + concat("optimizer: {name: ", optimizer, more, "}"));
      };
      const Learned plain = with("");
      EXPECT_EQ(other_bits(plain, with(", momentum_by_delay: 0.9")), "") << scheme << optimizer;
      EXPECT_NE(other_bits(plain, with(", momentum_by_delay: 0.99")), "") << scheme << optimizer;
    }
}

/// 0.5 + 3·(0.75 − 0.5)/3 at a delay of as many updates as stages, or more; 0.5 at none.
TEST(Identities, AMomentumByDelayIsTheMomentumThatTheDelayMakes) {
  const Changes base{kCnn, "train.epochs: 1", "optimizer: {name: sgd, lr: 0.02, momentum: 0.5}"};
  const Changes by_delay =
      base + "optimizer: {name: sgd, lr: 0.02, momentum: 0.5, momentum_by_delay: 0.75}";
  for (const char* delay : {"3", "5"}) {
    const std::string late = concat("scheme: {name: delayed_sgd, delay: ", delay, "}");
    EXPECT_EQ(other_bits(learned(by_delay + late),
                         learned(base + late + "optimizer: {name: sgd, lr: 0.02, momentum: 0.75}")),
              "")
        << delay;
  }
  EXPECT_EQ(other_bits(learned(by_delay + "scheme: {name: gpipe}"),
                       learned(base + "scheme: {name: gpipe}")),
            "");
  // A gradient that waits is late, too.
  EXPECT_EQ(other_bits(learned(by_delay + "perturb.gradient_delay: 3"),
                       learned(base + "perturb.gradient_delay: 3" +
                               "optimizer: {name: sgd, lr: 0.02, momentum: 0.75}")),
            "");
}

TEST(Identities, MomentaByDelayGiveTheSameBitsInEveryExecution) {
  for (const char* optimizer : {"sgd, momentum: 0.9", "nadamw, lr: 0.002", "muon"})
    for (const char* scheme :
         {"{name: pipedream}", "{name: pipeoptim}", "{name: xpipe}, pipeline.microbatches: 2",
          "{name: amdp}, "
          "pipeline.stages: 4, pipeline.replicas: 2, pipeline.microbatches: 2"}) {
      Laboratory laboratory(
          joined({kCnn, concat("scheme: ", scheme),
                  concat("optimizer: {name: ", optimizer, ", momentum_by_delay: 0.99}")}));
      expect_same_bits(laboratory, concat(optimizer, " with ", scheme));
    }
}

TEST(Identities, PaciIsPipeDreamWithoutStashing) {
  const Changes base{kCnn, "pipeline.microbatches: 2"};
  EXPECT_EQ(other_bits(learned(base + "scheme: {name: paci}"),
                       learned(base + "scheme: {name: pipedream, weight_stashing: false}")),
            "");
}

/// With one micro-batch in flight the newest weights are those of the forward.
TEST(Identities, OneInFlightIsModelParallelism) {
  EXPECT_EQ(other_bits(learned({kCnn, "scheme: {name: model_parallel}"}),
                       learned({kCnn, "scheme: {name: pipedream, in_flight: 1}"})),
            "");
}

/// Where a stage is one linear layer, the activation that its backward needs is its input, which is
/// the same in the first forward and in the one that is run again.
TEST(Identities, FeaturesReplayIsPaciWhereStagesHaveNoActivationsOfTheirOwn) {
  const auto difference = [](const char* widths, const char* activation) {
    const Changes base{concat("model: {name: mlp, widths: ", widths, ", activation: ", activation,
                              "}, pipeline.stages: 2, train.epochs: 2")};
    return first_difference(learned(base + "scheme: {name: features_replay}").parameters,
                            learned(base + "scheme: {name: paci}").parameters);
  };
  EXPECT_EQ(difference("[6, 5, 3]", "identity"), "");
  EXPECT_NE(difference("[6, 5, 3]", "tanh"), "") << "its derivative is at the output";
  EXPECT_NE(difference("[6, 5, 4, 5, 3]", "identity"), "") << "two layers in a stage";
}

TEST(Identities, TheCutOfAModelChangesNothingWithoutStaleness) {
  const Changes base{kCnn, "scheme: {name: model_parallel}"};
  const Learned whole = learned(base + "pipeline.stages: 1");
  for (const char* cut :
       {"pipeline.stages: 2", "pipeline.stages: 8", "pipeline.balance: [1, 1, 6]"})
    EXPECT_EQ(other_bits(whole, learned(base + cut)), "") << cut;
}

void expect_nothing_learned_at_a_rate_of_zero(const Changes& training) {
  const Learned before = learned(training + "train.epochs: 0");
  const Learned after = learned(training + "optimizer.lr: 0");
  EXPECT_EQ(first_difference(before.parameters, after.parameters), "") << joined(training);
}

void expect_draining_does_not_matter(const Changes& training) {
  const Learned drained = learned(training), never = learned(training + "train.drain: never");
  EXPECT_EQ(other_bits(drained, never), "") << joined(training);
  EXPECT_EQ(drained.losses, never.losses) << joined(training);
}

TEST(Identities, ALearningRateOfZeroLeavesTheWeightsAlone) {
  for (const Changes& training : trainings_of(scheme_of_each_kind()))
    expect_nothing_learned_at_a_rate_of_zero(training);
}

TEST(Identities, ALearningRateOfZeroLeavesTheWeightsOfEverySchemeAlone) {
  for (const Changes& training : every_training())
    expect_nothing_learned_at_a_rate_of_zero(training);
}

TEST(Identities, DrainingDoesNotMatterToOneEpoch) {
  for (const Changes& training : trainings_of(scheme_of_each_kind()))
    expect_draining_does_not_matter(training);
}

TEST(Identities, DrainingDoesNotMatterToOneEpochOfEveryScheme) {
  for (const Changes& training : every_training()) expect_draining_does_not_matter(training);
}

TEST(Identities, RecomputingActivationsChangesNothingInOtherShapes) {
  for (const Changes& training : other_shapes()) {
    const Learned kept = learned(training);
    for (const char* mode : {"always", "except_last"}) {
      const Learned again = learned(training + concat("pipeline.recompute: ", mode));
      EXPECT_EQ(other_bits(kept, again), "") << mode << " " << joined(training);
      EXPECT_EQ(kept.losses, again.losses) << mode << " " << joined(training);
    }
  }
}

/// The identities above are not there because nothing ever differs.
/// Gradients are late by as much as the schedule says: by nothing, or by one update.
TEST(Identities, SpikeCompensationFollowsTheDelayOfTheSchedule) {
  const char* compensated = "optimizer: {name: spike_compensation, lr: 0.02, momentum: 0.9}";
  const Changes fresh{kCnn, "train.epochs: 1", "scheme: {name: gpipe}, pipeline.microbatches: 2"};
  EXPECT_EQ(other_bits(learned(fresh + compensated),
                       learned(fresh + "optimizer: {name: sgd, lr: 0.02, momentum: 0.9}")),
            "");
  const Changes late{kCnn, "train.epochs: 1", "scheme: {name: delayed_sgd, delay: 1}"};
  const Learned by_schedule = learned(late + compensated);
  const Learned by_option =
      learned(late + "optimizer: {name: spike_compensation, lr: 0.02, momentum: 0.9, delay: 1}");
  EXPECT_NE(other_bits(by_schedule, by_option), "");  // the first gradient is not late
  EXPECT_EQ(other_bits(by_option, learned(late + "optimizer: {name: sgd, lr: 0.02, momentum: 0.9, "
                                                 "nesterov: true}")),
            "");
}

/// A gradient that waits is as stale as one whose passes were early.
TEST(Identities, AGradientThatWaitsIsStale) {
  const Changes late{kCnn, "scheme: {name: model_parallel}", "perturb.gradient_delay: 2"};
  EXPECT_EQ(other_bits(learned(late + "optimizer: {name: spike_compensation, lr: 0.02}"),
                       learned(late + "optimizer: {name: spike_compensation, lr: 0.02, delay: 2}")),
            "");
  EXPECT_EQ(other_bits(learned(late + "optimizer: {name: sgd, lr: 0.02, momentum: 0.9}" +
                               "gradient_rules: [{name: staleness_lr}]"),
                       learned(late + "optimizer: {name: sgd, lr: 0.01, momentum: 0.9}")),
            "");
}

/// Rules of no strength, under a scheme whose gradients are stale.
TEST(Identities, AGradientRuleOfNoStrengthChangesNothing) {
  for (const char* optimizer : {"{name: sgd, lr: 0.02, momentum: 0.9}", "{name: adam, lr: 0.002}"})
    for (const char* scheme : {"{name: pipedream}", "{name: pipeoptim}", "{name: spectrain}"}) {
      const Changes stale{kCnn, "train.epochs: 1", concat("scheme: ", scheme),
                          concat("optimizer: ", optimizer)};
      const Learned plain = learned(stale);
      for (const char* rule :
           {"{name: clip, norm: 1.0e+9}", "{name: dc_asgd, lambda: 0}",
            "{name: dc_asgd, lambda: 0, adaptive: true}", "{name: staleness_lr, power: 0}",
            "{name: error_feedback, coefficient: 0}"})
        EXPECT_EQ(other_bits(plain, learned(stale + concat("gradient_rules: [", rule, "]"))), "")
            << rule << " with " << scheme << optimizer;
    }
}

/// Without staleness there is nothing to correct: in schemes that flush, and in one stage.
TEST(Identities, ACorrectionOfStalenessChangesNothingWithoutAny) {
  for (const char* shape :
       {"scheme: {name: gpipe}, pipeline.microbatches: 2",
        "scheme: {name: pipedream}, pipeline.stages: 1", "scheme: {name: delayed_sgd, delay: 0}"}) {
    const Changes fresh{kCnn, "train.epochs: 1", shape};
    const Learned plain = learned(fresh);
    for (const char* rule :
         {"{name: dc_asgd, lambda: 5}", "{name: dc_asgd, lambda: 5, adaptive: true}",
          "{name: gap_aware}", "{name: staleness_lr}"})
      EXPECT_EQ(other_bits(plain, learned(fresh + concat("gradient_rules: [", rule, "]"))), "")
          << rule << " with " << shape;
  }
}

TEST(Identities, ACorrectionOfStalenessChangesStaleTrainings) {
  const Changes stale{kCnn, "train.epochs: 1", "scheme: {name: pipedream}"};
  const Learned plain = learned(stale);
  for (const char* rule :
       {"{name: clip, norm: 0.01}", "{name: dc_asgd}", "{name: dc_asgd, adaptive: true}",
        "{name: gap_aware}", "{name: staleness_lr}", "{name: error_feedback}"})
    EXPECT_NE(other_bits(plain, learned(stale + concat("gradient_rules: [", rule, "]"))), "")
        << rule;
}

/// The first update of a stage has none before it to be compared with.
TEST(Identities, ErrorFeedbackIsAnotherTrainingFromTheSecondUpdateOn) {
  const Changes plain{kCnn, "train.epochs: 1", "scheme: {name: model_parallel}",
                      "optimizer: {name: adam, lr: 0.002}"};
  const Changes corrected = plain + "gradient_rules: [{name: error_feedback}]";
  const auto of = [](const Changes& changes, int minibatches) {
    return learned(changes + concat("loader.batch_size: 8, dataset.train: ", 8 * minibatches));
  };
  EXPECT_EQ(other_bits(of(plain, 1), of(corrected, 1)), "");
  EXPECT_NE(other_bits(of(plain, 2), of(corrected, 2)), "");
}

constexpr const char* kOfModel = "gradient_rules: [{name: clip, norm: 0.05, over: model}]";

/// Every scheme that flushes, whatever its updates wait for.
TEST(Identities, ClippingOverTheModelGivesTheSameBitsInEveryExecution) {
  for (const char* shape :
       {"scheme: {name: gpipe}, pipeline.microbatches: 2, pipeline.replicas: 2",
        "scheme: {name: one_f_one_b}, pipeline.microbatches: 4",
        "scheme: {name: interleaved}, pipeline.stages: 4, pipeline.microbatches: 2",
        "scheme: {name: zb_h1}, pipeline.microbatches: 4", "scheme: {name: model_parallel}",
        "scheme: {name: gpipe}, pipeline.placement: [0, 1, 0]",
        // A worker has two stages, of which one is updated long after the next mini-batch began
        // elsewhere.
        "scheme: {name: zb_v}, pipeline.stages: 6, pipeline.microbatches: 6",
        "scheme: {name: hanayo}, pipeline.stages: 8, pipeline.microbatches: 4",
        "scheme: {name: v_min}, pipeline.stages: 8, pipeline.microbatches: 8",
        "scheme: {name: dualpipe_v}, pipeline.stages: 6, pipeline.microbatches: 6",
        "scheme: {name: chimera}, pipeline.stages: 4, pipeline.replicas: 2, "
        "pipeline.microbatches: 2",
        "scheme: {name: dualpipe}, pipeline.stages: 4, pipeline.replicas: 2, "
        "pipeline.microbatches: 3"}) {
    Laboratory laboratory(joined({kCnn, shape, kOfModel}));
    expect_same_bits(laboratory, shape);
  }
}

double largest_difference(const Learned& a, const Learned& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    largest = std::max(
        largest, (a.parameters[i].second - b.parameters[i].second).abs().max().item<double>());
  return largest;
}

TEST(Identities, TheCutDoesNotMatterToClippingOverTheModel) {
  const Changes clipped{kCnn, "train.epochs: 1", "train.precision: float64",
                        "scheme: {name: gpipe}", kOfModel};
  const Learned whole = learned(clipped + "pipeline.stages: 1");
  EXPECT_LT(largest_difference(whole, learned(clipped)), tolerance::kTrainedOtherwise);
  EXPECT_LT(largest_difference(whole, learned(clipped + "pipeline.stages: 1" +
                                              "gradient_rules: [{name: clip, norm: 0.05}]")),
            tolerance::kTrainedOtherwise);
  EXPECT_GT(
      largest_difference(whole, learned(clipped + "gradient_rules: [{name: clip, norm: 0.05}]")),
      tolerance::kTrainedOtherwise);
}

/// For rules that compare versions, a stage keeps what its forwards have read although no backward
/// needs it any more; one that corrects updates predicts behind them.
TEST(Identities, RulesAgainstStalenessGiveTheSameBitsInEveryExecution) {
  for (const char* rules : {"[{name: gap_aware}, {name: clip, norm: 0.5}]",
                            "[{name: staleness_lr}, {name: dc_asgd, adaptive: true}]",
                            "[{name: error_feedback}, {name: gap_aware}]"})
    for (const char* scheme :
         {"{name: pipedream}", "{name: pipedream, weight_stashing: false}", "{name: pipeoptim}",
          "{name: spectrain, version: 2}", "{name: pipemare}", "{name: delayed_sgd, delay: 2}"}) {
      Laboratory laboratory(concat("{scheme: ", scheme, ", gradient_rules: ", rules,
                                   ", pipeline.replicas: 2, ", kCnn, "}"));
      expect_same_bits(laboratory, concat(rules, " with ", scheme));
    }
}

TEST(Identities, StalenessDoesMatter) {
  const Learned plain = learned({kCnn, "scheme: {name: model_parallel}"});
  for (const char* scheme : {"pipedream", "spectrain", "pipeoptim", "interlocking"}) {
    const Learned other = learned({kCnn, concat("scheme: {name: ", scheme, "}")});
    EXPECT_NE(first_difference(plain.parameters, without_heads(other.parameters)), "") << scheme;
  }
}

}  // namespace
}  // namespace pipewright::test
