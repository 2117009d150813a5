// SPDX-License-Identifier: Apache-2.0
// Micro-batches cut into slices of their sequences (pipeline.slices): the gradients of the whole
// sequences but for rounding, the same bits in every execution, and refusals of what slices do not
// go with.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/schedule/prove.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// Three stages of a GPT of four blocks, in float64; four updates. `changes` go last.
std::string changes_of_gpt(const std::string& changes = "") {
  std::map<std::string, std::string> all;
  for (const std::string& each :
       {std::string("dataset: {name: synthetic, train: 32, test: 4}, loader.batch_size: 8, "
                    "model: {name: gpt, vocabulary: 16, tokens: 8, width: 16, heads: 2, layers: 4, "
                    "dropout: 0}, pipeline.stages: 3, pipeline.microbatches: 2, "
                    "scheme: {name: seq1f1b}, train.precision: float64"),
        changes})
    for (const auto& [key, value] : parse_yaml(concat("{", each, "}"), "changes.yaml").fields)
      all[key] = to_json(value);
  std::string text;
  for (const auto& [key, value] : all) text += concat(text.empty() ? "{" : ", ", key, ": ", value);
  return text + "}";
}

struct LearnedInSlices {
  Stages stages;
  std::vector<double> losses;
};

LearnedInSlices learned_by_gpt(const std::string& changes,
                               Execution execution = Execution::Serial) {
  Laboratory laboratory(changes_of_gpt(changes));
  LearnedInSlices result{.stages = laboratory.plan().stages(), .losses = {}};
  result.losses = flat_losses(train(laboratory.plan(), result.stages, execution));
  return result;
}

/// Four updates of a model whose sums have at most 8 · 8 · 16 terms in some twenty layers, one
/// behind another. Gradients of slices are added up in another order.
constexpr double kSliced = tolerance::rounded64(4.0 * 8 * 8 * 16);

void expect_rounding_apart(const LearnedInSlices& a, const LearnedInSlices& b,
                           const std::string& what) {
  EXPECT_LT(distance(a.stages, b.stages, state_of(a.stages).size()), kSliced) << what;
  ASSERT_EQ(a.losses.size(), b.losses.size()) << what;
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_NEAR(a.losses[i], b.losses[i], a.losses[i] * kSliced) << what << ", mini-batch " << i;
}

void expect_same_learned(const LearnedInSlices& a, const LearnedInSlices& b,
                         const std::string& what) {
  EXPECT_EQ(difference(a.stages, b.stages), "") << what;
  EXPECT_EQ(a.losses, b.losses) << what;
}

TEST(Slices, LearnWhatWholeSequencesDoButForRounding) {
  const LearnedInSlices whole = learned_by_gpt("scheme: {name: one_f_one_b}");
  for (const char* scheme : {"seq1f1b", "gpipe"})
    for (const int slices : {2, 4, 8}) {
      const std::string what = concat(scheme, ", ", slices, " slices");
      const LearnedInSlices sliced =
          learned_by_gpt(concat("scheme: {name: ", scheme, "}, pipeline.slices: ", slices));
      expect_rounding_apart(whole, sliced, what);
      EXPECT_NE(difference(whole.stages, sliced.stages), "") << what << " were not cut";
    }
}

TEST(Slices, ChangeNoBitWhereThereIsOne) {
  for (const char* dropout : {"0", "0.25"}) {
    const std::string model = concat("model.dropout: ", dropout);
    expect_same_learned(learned_by_gpt(concat("scheme: {name: one_f_one_b}, ", model)),
                        learned_by_gpt(concat("pipeline.slices: 1, ", model)), dropout);
  }
}

/// The masks of a slice are those parts of the whole sequences' masks.
TEST(Slices, DropOutWhatWholeSequencesDo) {
  const LearnedInSlices whole = learned_by_gpt("scheme: {name: one_f_one_b}, model.dropout: 0.25");
  for (const int slices : {2, 8})
    expect_rounding_apart(whole,
                          learned_by_gpt(concat("model.dropout: 0.25, pipeline.slices: ", slices)),
                          concat(slices, " slices"));
}

TEST(Slices, AreWeighedByTheirSamplesWhereMicroBatchesDiffer) {
  for (const char* shape :
       {"pipeline.microbatches: 3", "pipeline.microbatches: 1",
        "pipeline.microbatches: 3, train.gradient: sum",
        "pipeline.microbatches: 3, pipeline.microbatch_sizes: torch_chunk",
        "dataset: {name: synthetic, train: 27, test: 4}, loader.drop_last: false",
        "pipeline.replicas: 3, loader.batch_size: 16", "pipeline.placement: [0, 1, 0]",
        "loss: {name: cross_entropy, tokens: sum, label_smoothing: 0.1}, optimizer.lr: 0.001"})
    expect_rounding_apart(learned_by_gpt(concat("scheme: {name: one_f_one_b}, ", shape)),
                          learned_by_gpt(concat("pipeline.slices: 4, ", shape)), shape);
}

TEST(Slices, GiveTheSameBitsInEveryExecution) {
  for (const char* shape :
       {"pipeline.slices: 4", "pipeline.slices: 8, model.dropout: 0.25",
        "pipeline.slices: 2, scheme: {name: gpipe}", "pipeline.slices: 4, pipeline.replicas: 2",
        "pipeline.slices: 4, train.precision: float32",
        "pipeline.slices: 4, train.precision: bfloat16",
        "pipeline.slices: 4, pipeline.placement: [0, 1, 0]"})
    expect_same_learned(learned_by_gpt(shape, Execution::Serial),
                        learned_by_gpt(shape, Execution::Threads), shape);
}

TEST(Slices, RecomputeTheSameBits) {
  for (const char* shape : {"pipeline.slices: 4", "pipeline.slices: 4, model.dropout: 0.25",
                            "pipeline.slices: 2, scheme: {name: gpipe}"}) {
    const LearnedInSlices kept = learned_by_gpt(shape);
    for (const char* recompute : {"always", "except_last"})
      for (const Execution execution : {Execution::Serial, Execution::Threads})
        expect_same_learned(
            kept, learned_by_gpt(concat(shape, ", pipeline.recompute: ", recompute), execution),
            concat(shape, ", ", recompute));
  }
}

/// The schedule with each backward in two halves, the later ones of a mini-batch at its end.
Schedule with_halves(Schedule schedule) {
  for (auto& worker : schedule.workers) {
    std::vector<Action> actions, later;
    for (const Action& action : worker) {
      if (action.kind == ActionKind::Update) {
        actions.insert(actions.end(), later.begin(), later.end());
        later.clear();
      }
      actions.push_back(action);
      if (action.kind != ActionKind::Backward) continue;
      actions.back().kind = ActionKind::BackwardInput;
      later.push_back(action);
      later.back().kind = ActionKind::BackwardWeight;
    }
    worker = std::move(actions);
  }
  return schedule;
}

TEST(Slices, GoBackInTwoHalvesWithTheSameBits) {
  for (const char* shape :
       {"pipeline.slices: 4", "pipeline.slices: 2, pipeline.recompute: always"}) {
    Laboratory laboratory(changes_of_gpt(shape));
    Plan& plan = laboratory.plan();
    plan.training = compile(prove(with_halves(laboratory.experiment.schedule(plan.minibatches))));
    LearnedInSlices halved{.stages = plan.stages(), .losses = {}};
    halved.losses = flat_losses(train(plan, halved.stages, Execution::Threads));
    expect_same_learned(learned_by_gpt(shape), halved, shape);
  }
}

TEST(Slices, AreOfTheLossOfAllTargetsWhereSomeAreMissing) {
  const at::Tensor output = at::randn({3, 6, 5}, at::kDouble);
  at::Tensor target = at::arange(18, at::kLong).remainder(5).view({3, 6});
  target[0].narrow(0, 2, 4).fill_(kNoTarget);
  target[1].narrow(0, 5, 1).fill_(kNoTarget);
  for (const char* options :
       {"{}", "{tokens: sum}", "{label_smoothing: 0.2}", "{average: tokens}"}) {
    const Value document = parse_yaml(options, "test");
    Problems problems;
    Options of(&document, "loss", problems);
    const auto loss = Registry<Loss>::instance().find("cross_entropy")->make(of);
    const double whole = (*loss)(output, target).item<double>();
    for (const std::int64_t slices : {1, 2, 3, 6}) {
      double sum = 0;
      const std::int64_t tokens = 6 / slices;
      for (std::int64_t i = 0; i < slices; ++i)
        sum += loss->of_part(output.narrow(1, i * tokens, tokens),
                             target.narrow(1, i * tokens, tokens).contiguous(), target)
                   .item<double>();
      EXPECT_NEAR(sum, whole, whole * tolerance::kHundredOperations) << options << slices;
    }
  }
}

/// What an experiment is refused with, or "".
std::string refusal_of_slices(const std::string& changes) {
  try {
    Laboratory laboratory(changes_of_gpt(changes));
    laboratory.plan();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment) << error.what();
    return error.what();
  }
  return "";
}

TEST(Slices, AreRefusedWhereTheyCannotBe) {
  const std::pair<const char*, const char*> wrong[] = {
      {"pipeline.slices: 3", "a sample of this data set has 8 tokens; expected a divisor of 8"},
      {"pipeline.slices: 2, model: {name: transformer, width: 8, heads: 2, layers: 2}",
       "slices need a causal model, in which no token sees a later one"},
      {"pipeline.slices: 2, scheme: {name: one_f_one_b}", "this scheme's do not"},
      {"pipeline.slices: 2, scheme: {name: pipedream}", "this scheme's do not"},
      {"pipeline.slices: 2, scheme: {name: interlocking}", "a scheme with one loss"},
      {"pipeline.slices: 2, pipeline.compression: {name: fp16}",
       "expected no pipeline.compression"},
      {"pipeline.slices: 2, pipeline.offload: always", "expected pipeline.offload: never"},
      {"pipeline.slices: 2, probes: [{name: norms}]", "expected no probes"},
      {"pipeline.slices: 0", "pipeline.slices"}};
  EXPECT_EQ(refusal_of_slices("pipeline.slices: 2"), "");
  for (const auto& [changes, text] : wrong) {
    const std::string refusal = refusal_of_slices(changes);
    EXPECT_NE(refusal.find(text), std::string::npos) << changes << ": " << refusal;
  }
}

}  // namespace
}  // namespace pipewright::test
