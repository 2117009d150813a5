// SPDX-License-Identifier: Apache-2.0
// Beam search against a plain one that reads every prefix again, one sentence at a time; and BLEU
// as a column of a training.
#include "core/training/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensors/torch.h"
#include "core/training/trainer.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

constexpr std::int64_t kVocabulary = 8, kEncoder = 5, kAttention = 7;

/// A GNMT-8 of width 4 with made-up weights.
struct Network {
  explicit Network(std::uint64_t seed) {
    model = make_model("gnmt8", concat("{vocabulary: ", kVocabulary, ", width: 4, tokens: 9}"));
    layers = model->layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      parameters.push_back(random_parameters(*layers[i], seed * 100 + i));
      const auto specs = layers[i]->parameters();
      for (std::size_t p = 0; p < specs.size(); ++p)
        file.tensors.emplace_back(parameter_name(*layers[i], specs[p].name), parameters[i][p]);
    }
  }
  Translator translator() const { return {layers, kEncoder, file, at::kCPU}; }

  std::unique_ptr<Model> model;
  std::vector<LayerPtr> layers;
  std::vector<std::vector<at::Tensor>> parameters;
  TensorFile file;
};

struct Hypothesis {
  std::vector<std::int64_t> tokens{kStartToken};
  double score = 0;
  std::vector<double> coverage;
  bool ended() const { return tokens.back() == kEndToken; }
};

struct Next {
  at::Tensor chances, attention;  ///< of each token; over the source
};

/// Of what follows the prefix.
Next next(const Network& network, const at::Tensor& source, const Hypothesis& hypothesis) {
  Tensors x{source, at::tensor(hypothesis.tokens).unsqueeze(0)};
  Next result;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const auto& p = network.parameters[i];
    if (i == kAttention) {
      const at::Tensor query = at::mv(p[0], x[0][0][-1]);
      const at::Tensor scores =
          at::mv((query + at::matmul(x[1][0], p[1].t()) + p[4]).tanh(), p[2]) * p[3] / p[2].norm();
      const at::Tensor real = scores.narrow(0, 0, x[2].item<std::int64_t>()).exp();
      result.attention = real / real.sum();
    }
    x = network.layers[i]->forward_all(x, p, {}, {.training = false});
  }
  result.chances = at::log_softmax(x[0][0][-1], 0);
  return result;
}

double normalized(const Hypothesis& h, const BeamOptions& o) {
  double score =
      h.score / std::pow((5.0 + static_cast<double>(h.tokens.size())) / 6.0, o.length_exponent);
  for (const double sum : h.coverage)
    if (sum > 0) score += o.coverage_penalty * std::log(std::min(sum, 1.0));
  return score;
}

std::vector<Hypothesis> longer(const Network& network, const at::Tensor& source,
                               const Hypothesis& h) {
  if (h.ended()) return {h};
  const Next after = next(network, source, h);
  std::vector<Hypothesis> all;
  for (std::int64_t token = 0; token < kVocabulary; ++token) {
    Hypothesis one = h;
    one.tokens.push_back(token);
    one.score += after.chances[token].item<double>();
    one.coverage.resize(static_cast<std::size_t>(after.attention.size(0)));
    for (std::size_t s = 0; s < one.coverage.size(); ++s)
      one.coverage[s] += after.attention[static_cast<std::int64_t>(s)].item<double>();
    all.push_back(one);
  }
  return all;
}

std::vector<std::int64_t> plain_search(const Network& network, const at::Tensor& source,
                                       const BeamOptions& options) {
  std::vector<Hypothesis> beam{{}};
  const auto all_ended = [&] {
    return std::ranges::all_of(beam, [](const Hypothesis& h) { return h.ended(); });
  };
  for (int length = 1; length < options.max_length && !all_ended(); ++length) {
    std::vector<Hypothesis> candidates;
    for (const Hypothesis& h : beam)
      for (Hypothesis& one : longer(network, source, h)) candidates.push_back(std::move(one));
    std::ranges::sort(candidates, std::greater{}, &Hypothesis::score);
    candidates.resize(static_cast<std::size_t>(options.beam));
    beam = std::move(candidates);
  }
  const bool finished = all_ended();
  const auto best = std::ranges::max_element(
      beam, {}, [&](const Hypothesis& h) { return finished ? normalized(h, options) : h.score; });
  std::vector<std::int64_t> tokens(best->tokens.begin() + 1, best->tokens.end());
  if (!tokens.empty() && tokens.back() == kEndToken) tokens.pop_back();
  return tokens;
}

/// Six sources of 1 to 6 tokens.
at::Tensor sources() {
  at::Tensor all = (random({6, 6}, 5).abs() * 100).to(at::kLong).remainder(kVocabulary - 4) + 4;
  for (std::int64_t s = 0; s < 6; ++s) all[s].narrow(0, s + 1, 5 - s).fill_(kPaddingToken);
  return all;
}

TEST(BeamSearch, FindsWhatAPlainSearchFinds) {
  std::size_t cut = 0, whole = 0, tokens = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const BeamOptions options :
         {BeamOptions{.beam = 4, .max_length = 12}, BeamOptions{.beam = 1, .max_length = 12},
          BeamOptions{
              .beam = 3, .max_length = 20, .length_exponent = 1.5, .coverage_penalty = 2}}) {
      const Network network(seed);
      const Sentences found = network.translator().translate(sources(), options);
      ASSERT_EQ(found.size(), 6U);
      for (std::int64_t s = 0; s < 6; ++s) {
        const auto& sentence = found[static_cast<std::size_t>(s)];
        const at::Tensor source = sources()[s].narrow(0, 0, s + 1).unsqueeze(0);
        EXPECT_EQ(sentence, plain_search(network, source, options))
            << "seed " << seed << ", sentence " << s << ", beam " << options.beam;
        (static_cast<int>(sentence.size()) + 1 == options.max_length ? cut : whole) += 1;
        tokens += sentence.size();
      }
    }
  EXPECT_GT(cut, 0U) << "none reached the greatest length";
  EXPECT_GT(whole, 10U) << "none ended";
  EXPECT_GT(tokens, 100U);
}

TEST(BeamSearch, DoesNotDependOnTheOtherSentences) {
  const Network network(2);
  const BeamOptions options{.beam = 4, .max_length = 12};
  const Sentences together = network.translator().translate(sources(), options);
  for (std::int64_t s = 0; s < 6; ++s)
    EXPECT_EQ(network.translator().translate(sources().narrow(0, s, 1), options)[0],
              together[static_cast<std::size_t>(s)])
        << s;
}

constexpr const char* kTranslation =
    "model: {name: gnmt8, vocabulary: 20, width: 32, tokens: 8, dropout: 0}, dataset: {name: "
    "synthetic, train: 512, test: 32}, loss: {name: cross_entropy, label_smoothing: 0.1, tokens: "
    "sum}, loader.batch_size: 32, optimizer: {name: adam, lr: 0.004}, metrics: [perplexity, bleu]";

double last_bleu(const std::string& changes, std::vector<double>* all = nullptr) {
  Laboratory laboratory(concat("{", kTranslation, ", ", changes, "}"));
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  trainer.train();
  if (all != nullptr)
    for (const EpochRow& row : trainer.epochs()) all->push_back(row.metrics.at(1));
  EXPECT_GT(trainer.epochs().back().metrics.at(0), 1) << "perplexity";
  return trainer.epochs().back().metrics.at(1);
}

TEST(TestBleu, RisesWhileAModelLearnsToTranslate) {
  std::vector<double> epochs;
  const double last = last_bleu("train.epochs: 30, train.evaluate_every: 29", &epochs);
  EXPECT_GT(last, 90);
  EXPECT_TRUE(std::isnan(epochs[0])) << "not measured";
  EXPECT_LT(last_bleu("train.epochs: 1"), 20);
}

TEST(TestBleu, IsTheSameSeriallyAndInThreads) {
  EXPECT_EQ(last_bleu("train.epochs: 4, pipeline.execution: serial"),
            last_bleu("train.epochs: 4, pipeline.execution: threads"));
}

TEST(TestBleu, InsideATrainingIsThatOfTheWeightsSetAside) {
  const std::string undrained =
      "train.drain: never, train.epochs: 0, pipeline.stages: 3, scheme: {name: pipedream}, ";
  Laboratory laboratory(concat("{", kTranslation, ", ", undrained,
                               "train.steps: 70, train.evaluate: {every: 64, unit: minibatch}}"));
  Team alone;
  Trainer trainer(laboratory.plan(), alone, nullptr, nullptr, nullptr);
  trainer.train();
  EXPECT_EQ(trainer.evaluations().at(0).metrics.at(1), last_bleu(undrained + "train.steps: 64"));
  EXPECT_GT(trainer.evaluations().at(0).metrics.at(1), 0);
}

TEST(TestBleu, IsRefusedForAModelThatDoesNotTranslate) {
  Laboratory laboratory("{metrics: [bleu]}");
  try {
    laboratory.plan();
    ADD_FAILURE() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("bleu"), std::string::npos);
  }
}

TEST(SyntheticTranslation, HasTheTargetsTokensAsItsText) {
  Laboratory laboratory(concat("{", kTranslation, "}"));
  laboratory.plan();
  const Dataset& dataset = *laboratory.plan().dataset;
  const std::vector<std::int64_t> first{0};
  const at::Tensor y = dataset.batch(Split::Test, first, nullptr).y[0];
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < 7; ++i) words.push_back(std::to_string(y[i].item<std::int64_t>()));
  EXPECT_EQ(y[7].item<std::int64_t>(), kEndToken);
  EXPECT_EQ(dataset.reference(Split::Test, 0), join(words, " "));
}

}  // namespace
}  // namespace pipewright::test
