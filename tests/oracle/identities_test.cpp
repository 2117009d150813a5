// SPDX-License-Identifier: Apache-2.0
/// Schemes that must agree with one another, a network small enough for pencil and paper, and a
/// check that the random cases notice what they are for.
#include "cases.h"
#include "tolerances.h"
#include "training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace oracle {
namespace {

/// Largest difference between the main parameters of two results (heads left out).
double distance(const Experiment& e, const Result& a, const Result& b) {
  double largest = 0;
  for (int k = 0; k < e.stages(); ++k)
    for (std::size_t i = 0; i < 2 * layers_of_stage(e, k).size(); ++i) {
      const auto stage = static_cast<std::size_t>(k);
      largest =
          std::max(largest, (a.weights[stage][i] - b.weights[stage][i]).cwiseAbs().maxCoeff());
    }
  return largest;
}

Result trained(const Experiment& e) {
  return train(e, training_data(e), initial_weights(e));
}

/// Two epochs of seven mini-batches over `stages` stages; momentum, decay and a falling learning
/// rate.
Experiment experiment(int stages, const SchemeOptions& scheme, int microbatches = 1) {
  Experiment e;
  e.widths = {4, 6, 5, 4, 7, 5, 3};
  e.balance.assign(static_cast<std::size_t>(stages), 1);
  e.balance.back() = 7 - stages;
  e.train_samples = 49;
  e.batch_size = 7;
  e.epochs = 2;
  e.microbatches = microbatches;
  e.scheme = scheme;
  e.optimizer = {.name = "sgd", .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  e.learning_rate = {.name = "linear", .per = "step"};
  return e;
}

const SchemeOptions kPlain{.name = "model_parallel"};

TEST(Identity, OneStageMakesEverySchemePlainTraining) {
  const Result plain = trained(experiment(1, kPlain));
  for (const SchemeOptions& scheme :
       std::vector<SchemeOptions>{{.name = "data_parallel"},
                                  {.name = "gpipe"},
                                  {.name = "one_f_one_b"},
                                  {.name = "seq1f1b"},
                                  {.name = "pipedream"},
                                  {.name = "pipedream", .weight_stashing = false},
                                  {.name = "pipedream", .vertical_sync = true},
                                  {.name = "spectrain", .version = 1},
                                  {.name = "spectrain", .version = 2},
                                  {.name = "pipeoptim"},
                                  {.name = "xpipe"},
                                  {.name = "interlocking", .width = 1},
                                  {.name = "delayed_sgd", .delay = {0}},
                                  {.name = "interleaved"},
                                  {.name = "zb_h1"},
                                  {.name = "zb_h2"},
                                  {.name = "zb_v"},
                                  {.name = "v_half"},
                                  {.name = "v_min"},
                                  {.name = "hanayo"},
                                  {.name = "dualpipe_v"},
                                  {.name = "paci"},
                                  {.name = "lwp"},
                                  {.name = "features_replay"},
                                  {.name = "pipemare", .annealing = 5}}) {
    const Experiment e = experiment(1, scheme);
    EXPECT_EQ(distance(e, plain, trained(e)), 0) << scheme.name;
  }
}

TEST(Identity, SynchronousSchemesArePlainTrainingForAnyCut) {
  const Result plain = trained(experiment(1, kPlain));
  const auto parameters = [](const Result& result) {
    Tensors all;
    for (const Tensors& stage : result.weights) all.insert(all.end(), stage.begin(), stage.end());
    return all;
  };
  Experiment e = experiment(4, {.name = "gpipe"}, 3);
  // Initial weights are drawn stage by stage, layer by layer, hence the same for any cut.
  const Tensors a = parameters(plain), b = parameters(trained(e));
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].isApprox(b[i], tolerance::kTrainings));
}

TEST(Identity, AQueueThatIsNotFilledAnewIsTheSameInTheFirstEpochOnly) {
  for (const SchemeOptions& scheme : std::vector<SchemeOptions>{
           {.name = "pipedream"}, {.name = "spectrain", .version = 2, .as_coded = true}}) {
    Experiment a = experiment(4, scheme), b = a;
    b.scheme.refill = false;
    EXPECT_GT(distance(a, trained(a), trained(b)), 1e-4) << scheme.name;
    a.drain_each_epoch = b.drain_each_epoch = false;
    EXPECT_EQ(distance(a, trained(a), trained(b)), 0) << scheme.name;
    a.drain_each_epoch = b.drain_each_epoch = true;
    a.epochs = b.epochs = 1;
    EXPECT_EQ(distance(a, trained(a), trained(b)), 0) << scheme.name;
  }
}

TEST(Identity, TheCutOfTorchChunkIsAnotherWhereMicroBatchesReadDifferentVersions) {
  Experiment a = experiment(4, {.name = "pipedream"}, 3), b = a;
  b.microbatch_sizes = "torch_chunk";  // 3, 3, 1 and not 3, 2, 2
  EXPECT_GT(distance(a, trained(a), trained(b)), 1e-4);
  a.scheme = b.scheme = {.name = "gpipe"};
  EXPECT_LT(distance(a, trained(a), trained(b)), 1e-9);
}

// A training of one epoch has the first fill only, in which the last rate is that of no update.
TEST(Identity, TheLastRatePredictsOtherwiseOnlyWhereTheRateChanges) {
  for (const char* name : {"spectrain", "pipeoptim"}) {
    const SchemeOptions next{.name = name}, last{.name = name, .prediction_lr = "last"};
    Experiment a = experiment(4, next), b = experiment(4, last);
    a.learning_rate = b.learning_rate = {.name = "step", .gamma = 0.5};
    EXPECT_GT(distance(a, trained(a), trained(b)), 1e-4) << name;
    a.learning_rate = b.learning_rate = {};
    EXPECT_EQ(distance(a, trained(a), trained(b)), 0) << name;
    a.learning_rate = b.learning_rate = {.name = "step", .gamma = 0.5};
    a.epochs = b.epochs = 1;
    EXPECT_EQ(distance(a, trained(a), trained(b)), 0) << name;
  }
}

TEST(Identity, PipeDreamIsSgdDelayedByEachStagesDepth) {
  const Experiment a = experiment(4, {.name = "pipedream"});
  const Experiment b = experiment(4, {.name = "delayed_sgd", .delay = {3, 2, 1, 0}});
  EXPECT_EQ(distance(a, trained(a), trained(b)), 0);
}

TEST(Identity, VerticalSyncIsSgdDelayedByTheWholeDepth) {
  const Experiment a = experiment(4, {.name = "pipedream", .vertical_sync = true});
  const Experiment b = experiment(4, {.name = "delayed_sgd", .delay = {3}});
  EXPECT_EQ(distance(a, trained(a), trained(b)), 0);
}

TEST(Identity, TwoBufferedWeightsAreSgdDelayedByOne) {
  const Experiment a = experiment(4, {.name = "pipedream_2bw"}, 5);
  const Experiment b = experiment(4, {.name = "delayed_sgd", .delay = {1}});
  EXPECT_LT(distance(a, trained(a), trained(b)), tolerance::kTrainings);
}

TEST(Identity, FullWidthInterlockingIsPlainTraining) {
  const Experiment a = experiment(4, {.name = "interlocking"});
  const Experiment b = experiment(4, kPlain);
  const Data data = training_data(a);
  const std::vector<Tensors> with_heads = initial_weights(a);
  std::vector<Tensors> without = with_heads;
  for (std::size_t k = 0; k + 1 < without.size(); ++k) without[k].resize(without[k].size() - 2);
  EXPECT_LT(distance(a, train(a, data, with_heads), train(b, data, without)),
            tolerance::kTrainings);
}

TEST(Identity, PredictingWithoutVelocityIsTheUnpredictedScheme) {
  Experiment a = experiment(4, {.name = "pipeoptim", .velocity = "geometric"});
  Experiment b = experiment(4, {.name = "pipedream", .weight_stashing = false});
  a.optimizer.momentum = b.optimizer.momentum = 0;  // Σ μ^j v = 0
  EXPECT_EQ(distance(a, trained(a), trained(b)), 0);
}

TEST(Identity, PipeMareWithoutItsTechniquesIsPipeDreamWithoutStashing) {
  const Experiment a = experiment(4, {.name = "pipemare", .correction = false}, 2);
  const Experiment b = experiment(4, {.name = "pipedream", .weight_stashing = false}, 2);
  EXPECT_EQ(distance(a, trained(a), trained(b)), 0);
}

TEST(Identity, PipeMareThatStaysInItsWarmUpIsPlainTraining) {
  const Experiment a = experiment(4, {.name = "pipemare", .annealing = 5, .warmup = 100});
  EXPECT_EQ(distance(a, trained(a), trained(experiment(4, kPlain))), 0);
}

TEST(Identity, DrainingMattersOnlyToStaleSchemes) {
  for (const char* name : {"gpipe", "pipedream"}) {
    Experiment e = experiment(4, {.name = name});
    const Result drained = trained(e);
    e.drain_each_epoch = false;
    const double difference = distance(e, drained, trained(e));
    if (e.scheme.name == "gpipe")
      EXPECT_EQ(difference, 0);
    else
      EXPECT_GT(difference, tolerance::kNoticeable);
  }
}

/// Elementwise multiplication is a diagonal layer: x = (1, 1), label 1, heads of ones, SGD with lr
/// 1, one step. Values of the interlocking code's own tests, where no final loss is involved
/// (theirs is not a cross-entropy).
Result toy(int stages, int width, const std::string& combine) {
  Experiment e;
  e.widths.assign(static_cast<std::size_t>(stages) + 1, 2);
  e.balance.assign(static_cast<std::size_t>(stages), 1);
  e.activation = Activation::Identity;
  e.train_samples = 1;
  e.scheme = {.name = "interlocking", .width = width, .combine = combine};
  e.optimizer.lr = 1;
  std::vector<Tensors> initial(e.balance.size());
  for (int k = 0; k < stages; ++k) {
    Tensors& stage = initial[static_cast<std::size_t>(k)];
    stage = {(2.0 + k) * Matrix::Identity(2, 2), Matrix::Zero(1, 2)};
    if (k + 1 < stages) stage.insert(stage.end(), {Matrix::Identity(2, 2), Matrix::Zero(1, 2)});
  }
  return train(e, {Matrix::Ones(1, 2), {1}}, initial);
}

void expect_diagonal(const Result& result, std::size_t stage, std::size_t tensor, double a,
                     double b) {
  const Matrix& matrix = result.weights[stage][tensor];
  EXPECT_NEAR(matrix(0, 0), a, tolerance::kTrainings) << "stage " << stage;
  EXPECT_NEAR(matrix(1, 1), b, tolerance::kTrainings) << "stage " << stage;
}

TEST(InterlockingToy, LocalAndFurtherReachingUpdatesAreThePublishedOnes) {
  const Result local = toy(4, 1, "furthest");
  expect_diagonal(local, 0, 0, 1.5, 2.5);
  expect_diagonal(local, 1, 0, 2, 4);
  expect_diagonal(local, 2, 0, 1, 7);
  expect_diagonal(local, 0, 2, 0, 2);  // heads
  expect_diagonal(local, 1, 2, -2, 4);
  expect_diagonal(local, 2, 2, -11, 13);
  const Result pairwise = toy(4, 2, "furthest");
  expect_diagonal(pairwise, 0, 0, 0.5, 3.5);
  expect_diagonal(pairwise, 1, 0, -1, 7);
  expect_diagonal(pairwise, 2, 2, -11, 13);
  expect_diagonal(toy(4, 3, "furthest"), 0, 0, -4, 8);
  expect_diagonal(toy(3, 2, "sum"), 0, 0, 0, 4);
  expect_diagonal(toy(3, 2, "mean"), 0, 0, 1, 3);
}

/// How far a case moves when its scheme is replaced: what a program with that mistake would show.
double notices(const Experiment& e, const std::function<void(Experiment&)>& mistake) {
  Experiment other = e;
  mistake(other);
  const Data data = training_data(e);
  const std::vector<Tensors> initial = initial_weights(e);
  return distance(e, train(e, data, initial), train(other, data, initial));
}

TEST(Cases, NoticeWrongVersionsAndOptions) {
  const auto noticed_by = [](const std::string& scheme,
                             const std::function<void(Experiment&)>& mistake) {
    const std::vector<Experiment> all = cases(scheme, 16);
    return std::count_if(all.begin(), all.end(), [&mistake](const Experiment& e) {
      return notices(e, mistake) > tolerance::kNoticeable;
    });
  };
  const auto to = [](const SchemeOptions& scheme) {
    return [scheme](Experiment& e) { e.scheme = scheme; };
  };
  EXPECT_GE(noticed_by("pipedream", to(kPlain)), 8);
  EXPECT_GE(noticed_by("pipedream_2bw", to(kPlain)), 8);
  EXPECT_GE(noticed_by("delayed_sgd", to(kPlain)), 8);
  EXPECT_GE(noticed_by("xpipe", to({.name = "pipedream", .weight_stashing = false})), 8);
  EXPECT_GE(noticed_by("interlocking", [](Experiment& e) { e.scheme.combine = "sum"; }), 4);
  EXPECT_GE(noticed_by("pipeoptim", [](Experiment& e) { e.scheme.s_offset ^= 1; }), 8);
  EXPECT_GE(noticed_by("spectrain", [](Experiment& e) { e.scheme.version ^= 3; }), 6);
  EXPECT_GE(noticed_by("pipemare", [](Experiment& e) { e.scheme.correction ^= true; }), 8);
  EXPECT_GE(noticed_by("pipemare", [](Experiment& e) { e.scheme.annealing = 7; }), 8);
  EXPECT_GE(noticed_by("pipemare", [](Experiment& e) { e.scheme.warmup = 2; }), 8);
  EXPECT_GE(noticed_by("pipemare", [](Experiment& e) { e.scheme.decay = 0.2; }), 6);
  for (const char* scheme : {"spectrain", "pipeoptim"}) {
    EXPECT_GE(noticed_by(scheme, [](Experiment& e) { e.scheme.s_mode = "constant"; }), 3);
    EXPECT_GE(noticed_by(scheme, [](Experiment& e) { e.scheme.velocity = "buffer"; }), 3);
  }
  EXPECT_GE(noticed_by("lwp", [](Experiment& e) { e.scheme.horizon += 1; }), 8);
  EXPECT_GE(noticed_by("lwp", [](Experiment& e) { e.scheme.horizon_in_steps ^= true; }), 6);
  EXPECT_GE(noticed_by("lwp", to({.name = "pipedream"})), 8);
  EXPECT_GE(noticed_by("paci", to({.name = "pipedream"})), 6);
  EXPECT_GE(noticed_by("paci", to(kPlain)), 6);
  EXPECT_GE(noticed_by("features_replay", to({.name = "paci"})), 6);
  EXPECT_GE(noticed_by("features_replay", to(kPlain)), 8);
  EXPECT_GE(noticed_by("amdp", to(kPlain)), 8);
  EXPECT_GE(noticed_by("amdp", to({.name = "paci"})), 8);
  EXPECT_GE(noticed_by("amdp", to({.name = "pipedream_2bw"})), 8);
  EXPECT_GE(noticed_by("pipedream", [](Experiment& e) { e.drain_each_epoch ^= true; }), 6);
  EXPECT_GE(
      noticed_by("pipedream", [](Experiment& e) { e.microbatches = e.microbatches == 1 ? 2 : 1; }),
      6);
}

/// How many of the experiments notice a mistake.
std::ptrdiff_t noticed(const std::vector<Experiment>& all,
                       const std::function<void(Experiment&)>& mistake) {
  return std::count_if(all.begin(), all.end(), [&mistake](const Experiment& e) {
    return notices(e, mistake) > tolerance::kNoticeable;
  });
}

TEST(Cases, NoticeWrongOptimizers) {
  const auto noticed_by = [](const std::string& optimizer,
                             const std::function<void(Experiment&)>& mistake) {
    return noticed(cases_of_optimizer(optimizer), mistake);
  };
  const auto named = [](const char* other) {
    return [other](Experiment& e) { e.optimizer.name = other; };
  };
  const auto with = [](double OptimizerOptions::*option, double factor) {
    return [option, factor](Experiment& e) { e.optimizer.*option *= factor; };
  };
  EXPECT_EQ(noticed_by("nadamw", named("adamw")), 8);
  EXPECT_EQ(noticed_by("nadamw", with(&OptimizerOptions::momentum_decay, 2)), 8);
  EXPECT_EQ(noticed_by("adan", named("nadamw")), 8);
  EXPECT_EQ(noticed_by("muon", named("sgd")), 8);
  EXPECT_EQ(noticed_by("muon", with(&OptimizerOptions::momentum, 0.9)), 8);
  EXPECT_EQ(noticed_by("lion", named("nadamw")), 8);
  EXPECT_EQ(noticed_by("soap", named("adamw")), 8);
  EXPECT_EQ(noticed_by("soap", with(&OptimizerOptions::eps, 2)), 8);
  EXPECT_EQ(noticed_by("spike_compensation", with(&OptimizerOptions::momentum, 0.9)), 8);
  EXPECT_GE(noticed_by("spike_compensation", named("sgd")), 3);  // where gradients are late
  for (const char* name : {"nadamw", "adan", "lion", "soap"})
    for (const auto beta : {&OptimizerOptions::beta1, &OptimizerOptions::beta2})
      EXPECT_GE(noticed_by(name, with(beta, 0.9)), 6) << name;
  EXPECT_EQ(noticed_by("adan", with(&OptimizerOptions::beta3, 0.9)), 8);
  for (const char* name : {"nadamw", "adan", "muon", "soap", "lion", "spike_compensation"})
    EXPECT_GE(noticed_by(name, [](Experiment& e) { e.optimizer.weight_decay += 0.01; }), 7) << name;
  EXPECT_GE(
      noticed(cases_of_stage_momenta(), [](Experiment& e) { e.optimizer.momentum_by_delay = 0; }),
      8);
}

TEST(Cases, NoticeWrongGradientRules) {
  const auto noticed_by = [](const std::string& rule,
                             const std::function<void(RuleOptions&)>& mistake) {
    return noticed(cases_of_rule(rule), [&](Experiment& e) { mistake(e.rules.front()); });
  };
  for (const char* rule : {"clip", "dc_asgd", "error_feedback", "gap_aware", "staleness_lr"})
    EXPECT_GE(noticed_by(rule, [](RuleOptions& options) { options.name = "none"; }), 4) << rule;
  EXPECT_GE(noticed_by("clip", [](RuleOptions& options) { options.norm *= 1.1; }), 8);
  EXPECT_GE(noticed_by("clip", [](RuleOptions& options) { options.over_model ^= true; }), 8);
  EXPECT_GE(noticed_by("dc_asgd", [](RuleOptions& options) { options.lambda *= 1.1; }), 4);
  EXPECT_GE(noticed_by("dc_asgd", [](RuleOptions& options) { options.adaptive ^= true; }), 4);
  const auto adaptive = [](RuleOptions& options) { options.adaptive = true; };
  std::vector<Experiment> all = cases_of_rule("dc_asgd");
  for (Experiment& e : all) adaptive(e.rules.front());
  EXPECT_GE(noticed(all, [](Experiment& e) { e.rules.front().decay *= 0.9; }), 4);
  EXPECT_GE(noticed(all, [](Experiment& e) { e.rules.front().eps *= 2; }), 4);
  EXPECT_GE(noticed_by("gap_aware", [](RuleOptions& options) { options.decay *= 0.9; }), 4);
  EXPECT_GE(noticed_by("gap_aware", [](RuleOptions& options) { options.eps *= 2; }), 4);
  EXPECT_GE(
      noticed(cases_of_error_feedback(), [](Experiment& e) { e.rules.front().coefficient *= 1.1; }),
      12);
  EXPECT_GE(noticed_by("staleness_lr", [](RuleOptions& options) { options.power *= 1.1; }), 4);
}

}  // namespace
}  // namespace oracle
