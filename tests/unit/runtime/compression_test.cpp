// SPDX-License-Identifier: Apache-2.0
// What crosses compressed edges: values that were rounded on the way, in every execution the same.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/executor.h"
#include "core/schedule/traffic.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/in_processes.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::test {
namespace {

at::Tensor rounded(const at::Tensor& x, at::ScalarType to) {
  return x.to(to).to(x.scalar_type());
}

/// bfloat16 on the way there, halves on the way back, whatever autograd would say.
struct Rounding : torch::autograd::Function<Rounding> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return rounded(x, at::kBFloat16);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradient) {
    return {rounded(gradient[0], at::kHalf)};
  }
};

/// Another layer, whose output is rounded as an edge behind it would.
class RoundedBehind final : public Layer {
 public:
  explicit RoundedBehind(LayerPtr inner) : inner_(std::move(inner)) {
    Layer::set_name(inner_->name());
  }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    return Rounding::apply(inner_->forward(input, parameters, buffers, pass));
  }

 private:
  LayerPtr inner_;
};

/// Another layer, of whose output only the largest two fifths are left, and only their gradients.
class MaskedBehind final : public Layer {
 public:
  explicit MaskedBehind(LayerPtr inner) : inner_(std::move(inner)) {
    Layer::set_name(inner_->name());
  }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor output = inner_->forward(input, parameters, buffers, pass);
    const at::Tensor sizes = output.detach().abs().view({-1});
    const at::Tensor order = std::get<1>(sizes.sort(/*stable=*/true, 0, /*descending=*/true));
    const at::Tensor largest =
        at::zeros_like(sizes).index_fill(0, order.narrow(0, 0, 2 * sizes.numel() / 5), 1);
    return at::where(largest.view(output.sizes()) == 1, output, at::zeros({}, output.options()));
  }

 private:
  LayerPtr inner_;
};

constexpr const char* kMasked = "{forward: {name: top_k, fraction: 0.4, mask_gradient: true}}";

/// Gradients that coders still await, by coder and micro-batch.
struct Ledger {
  using Key = std::tuple<const Coder*, int, int, std::int64_t>;
  std::map<Key, int> due;
  int gradients = 0;  ///< that have come

  static Key key(const Coder& coder, const CodecCall& call) {
    return {&coder, call.epoch, call.minibatch, call.first_sample};
  }
};

/// Sends values as they are, and notes in a ledger which gradients it awaits.
class NotedCoder final : public Coder {
 public:
  explicit NotedCoder(Ledger& ledger) : ledger_(ledger) {}
  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    out.payload(static_cast<std::int64_t>(x.nbytes())).copy_(x.view({-1}).view(at::kByte));
    ledger_.due[Ledger::key(*this, call)] += call.gradients;
  }
  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    return payload.clone().view(at::kFloat).view(sizes);
  }
  at::Tensor through(const at::Tensor& gradient, const CodecCall& call) override {
    --ledger_.due[Ledger::key(*this, call)];
    ++ledger_.gradients;
    return gradient;
  }

 private:
  Ledger& ledger_;
};

class Noted final : public Codec {
 public:
  explicit Noted(Ledger& ledger) : ledger_(ledger) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<NotedCoder>(ledger_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef) const override { return {}; }

 private:
  Ledger& ledger_;
};

constexpr const char* kBoth = "{name: bf16, backward: {name: fp16}}";

/// The error of a training in epoch 2 whose second stage has a codec of other options.
Error error_of_other_options(const std::string& first, const std::string& second,
                             Execution execution) {
  Laboratory one(concat("{pipeline.stages: 2, pipeline.compression: ", first, "}")),
      other(concat("{pipeline.stages: 2, pipeline.compression: ", second, "}"));
  const Plan& plan = one.plan();
  const Stages stages = plan.stages();
  std::vector<std::unique_ptr<EdgeEnds>> edges;
  edges.push_back(std::make_unique<EdgeEnds>(one.experiment.pipeline.compression, 0));
  edges.push_back(std::make_unique<EdgeEnds>(other.experiment.pipeline.compression, 1));
  Loader loader = plan.training_loader(2, 1);
  try {
    execute(plan.training, stages,
            {.batches = loader,
             .lr = [](int) { return 0.05; },
             .first_epoch = 2,
             .minibatches_per_epoch = plan.minibatches,
             .execution = execution,
             .edges = &edges});
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::Bug, "nothing was thrown");
}

TEST(Compression, APayloadThatDoesNotFitIsReportedWithStageCodecAndMiniBatch) {
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    const Error error =
        error_of_other_options("{name: uniform, bits: 8}", "{name: uniform, bits: 2}", execution);
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_EQ(error.where(), "worker 1, stage 1, 1F0");
    const std::string start =
        "codec uniform of the edge between stages 0 and 1, mini-batch 0 of epoch 2: a compressed "
        "message has ";
    EXPECT_EQ(error.message().substr(0, start.size()), start) << error.what();
  }
}

TEST(Compression, TrainsLikeALayerThatRoundsThereAndBack) {
  for (const char* scheme : {"gpipe", "one_f_one_b"})
    for (const int microbatches : {1, 4}) {
      const std::string shape =
          concat("scheme: {name: ", scheme, "}, pipeline.microbatches: ", microbatches);
      Laboratory cut(concat("{pipeline.compression: ", kBoth, ", ", shape, "}"));
      Laboratory whole(concat("{pipeline.stages: 1, ", shape, "}"));
      for (std::size_t layer = 0; layer < 3; ++layer)
        whole.experiment.layers[layer] =
            std::make_shared<RoundedBehind>(whole.experiment.layers[layer]);
      const Stages a = cut.plan().stages(), b = whole.plan().stages();
      const RunResult compressed = train(cut.plan(), a, Execution::Serial);
      EXPECT_EQ(flat_losses(compressed), flat_losses(train(whole.plan(), b, Execution::Serial)));
      EXPECT_EQ(difference(a, b), "") << scheme;
      Laboratory plain(concat("{", shape, "}"));
      const Stages c = plain.plan().stages();
      train(plain.plan(), c, Execution::Serial);
      EXPECT_NE(difference(a, c), "") << "nothing was rounded";
    }
}

TEST(Compression, GivesTheSameBitsInEveryExecutionAndScheme) {
  for (const char* scheme : {"gpipe", "pipedream", "spectrain", "pipeoptim", "zb_h1"}) {
    Laboratory laboratory(
        concat("{pipeline.compression: ", kBoth, ", scheme: {name: ", scheme, "}}"));
    expect_same_bits(laboratory, scheme);
  }
}

TEST(Compression, MasksGradientsThatHaveNoCodecLikeALayerThatDoes) {
  for (const char* recompute : {"never", "always"})
    for (const int microbatches : {1, 4}) {
      const std::string shape =
          concat("scheme: {name: one_f_one_b}, pipeline.microbatches: ", microbatches);
      Laboratory cut(concat("{pipeline.compression: ", kMasked, ", pipeline.recompute: ", recompute,
                            ", ", shape, "}"));
      Laboratory whole(concat("{pipeline.stages: 1, ", shape, "}"));
      for (std::size_t layer = 0; layer < 3; ++layer)
        whole.experiment.layers[layer] =
            std::make_shared<MaskedBehind>(whole.experiment.layers[layer]);
      const Stages a = cut.plan().stages(), b = whole.plan().stages();
      const RunResult masked = train(cut.plan(), a, Execution::Serial);
      EXPECT_EQ(flat_losses(masked), flat_losses(train(whole.plan(), b, Execution::Serial)));
      EXPECT_EQ(difference(a, b), "") << recompute << ", " << microbatches;
    }
}

TEST(Compression, MasksGradientsAlikeWithoutACodecAndWithOneThatLosesNothing) {
  for (const SchemeCase& scheme : scheme_of_each_kind()) {
    const auto trained = [&](bool masks, bool coded) {
      Laboratory laboratory(
          concat("{scheme: ", scheme_text(scheme), ", pipeline.microbatches: 4, ",
                 "pipeline.compression: {forward: {name: top_k, fraction: 0.4, mask_gradient: ",
                 masks ? "true" : "false", "}}}"));
      Problems problems;
      const Value nothing = parse_yaml("{}", "none.yaml");
      Options options(&nothing, "codec", problems);
      if (coded)
        for (EdgeCodecs& edge : laboratory.experiment.pipeline.compression)
          edge.backward = {"none", Registry<Codec>::instance().find("none")->make(options)};
      Stages stages = laboratory.plan().stages();
      train(laboratory.plan(), stages, Execution::Serial);
      return stages;
    };
    const Stages masked = trained(true, false);
    EXPECT_EQ(difference(masked, trained(true, true)), "") << scheme.name;
    EXPECT_NE(difference(masked, trained(false, false)), "") << scheme.name;
  }
}

TEST(Compression, MasksGradientsThatHaveNoCodecInEveryExecution) {
  for (const char* scheme : {"gpipe", "pipedream", "zb_h1", "interlocking"})
    for (const char* rest : {"pipeline.replicas: 2", "train.precision: float16"})
      expect_same_bits_in_processes(concat("{pipeline.compression: ", kMasked, ", scheme: {name: ",
                                           scheme, "}, pipeline.microbatches: 4, ", rest, "}"));
}

/// So a coder may forget what it has kept for gradients once these have come.
TEST(Compression, TellsCodersHowManyGradientsComeBack) {
  constexpr const char* kUNet =
      "model: {name: unet, depth: 2, convolutions: 1, base_channels: 4, channels: 1, size: 8}, "
      "loss: {name: binary_cross_entropy}, dataset.classes: 2, pipeline.balance: layers";
  std::vector<std::string> all{concat("{scheme: {name: gpipe}, ", kUNet, "}")};
  std::vector<SchemeCase> schemes = scheme_of_each_kind();
  schemes.push_back({"interlocking", "{width: 1}"});
  schemes.push_back({"interlocking", "{width: 3}"});
  for (const SchemeCase& scheme : schemes)
    all.push_back(concat("{scheme: ", scheme_text(scheme), ", pipeline.microbatches: 4}"));
  for (const std::string& changes : all) {
    Ledger ledger;
    Laboratory laboratory(changes);
    laboratory.experiment.pipeline.compression.assign(
        3, {.forward = {"noted", std::make_shared<Noted>(ledger)}});
    const Plan& plan = laboratory.plan();
    const Stages stages = plan.stages();
    train(plan, stages, Execution::Serial);
    const bool local = changes.find("width: 1}") != std::string::npos;
    EXPECT_EQ(ledger.gradients == 0, local) << changes;
    const auto edges = plan.edges();
    Loader loader = plan.evaluation_loader();
    execute(plan.evaluation, stages,
            {.batches = loader,
             .lr = [](int) { return 0.0; },
             .minibatches_per_epoch = loader.minibatches(),
             .edges = &edges});
    for (const auto& [key, due] : ledger.due)
      EXPECT_EQ(due, 0) << changes << ", mini-batch " << std::get<2>(key);
  }
}

TEST(Compression, RecomputesFromWhatArrived) {
  std::vector<Stages> trained;
  for (const char* recompute : {"never", "always"}) {
    Laboratory laboratory(concat("{pipeline.compression: ", kBoth,
                                 ", scheme: {name: gpipe}, pipeline.microbatches: 4, "
                                 "pipeline.recompute: ",
                                 recompute, "}"));
    trained.push_back(laboratory.plan().stages());
    train(laboratory.plan(), trained.back(), Execution::Serial);
  }
  EXPECT_EQ(difference(trained[0], trained[1]), "");
}

/// A U-Net's skip connections are compressed as the edge behind the stage they leave.
TEST(Compression, TakesSkipConnections) {
  const auto traffic = [](const char* compression) {
    Laboratory laboratory(concat(
        "{model: {name: unet, depth: 2, convolutions: 1, base_channels: 4, channels: 1, size: 8}, "
        "loss: {name: binary_cross_entropy}, dataset.classes: 2, pipeline.balance: layers, scheme: "
        "{name: gpipe}, "
        "pipeline.compression: ",
        compression, "}"));
    const Stages serial = laboratory.plan().stages(), threads = laboratory.plan().stages();
    const RunResult a = train(laboratory.plan(), serial, Execution::Serial);
    train(laboratory.plan(), threads, Execution::Threads);
    EXPECT_EQ(difference(serial, threads), "") << compression;
    return a.traffic;
  };
  int bypass = 0;
  for (const EdgeTraffic& edge : traffic("{name: fp16, edges: [0]}")) {
    const bool compressed = std::min(edge.from, edge.to) == 0;
    EXPECT_EQ(edge.sent_bytes < edge.value_bytes, compressed) << edge.from << " → " << edge.to;
    bypass += std::abs(edge.from - edge.to) > 1;
  }
  EXPECT_GT(bypass, 0) << "no skip connection goes past a stage";
}

TEST(Compression, CountsTheBytesThatCross) {
  Laboratory laboratory(
      "{pipeline.compression: {name: fp16, edges: [1], backward: {name: none}}, "
      "pipeline.microbatches: 2, scheme: {name: gpipe}}");
  const Plan& plan = laboratory.plan();
  for (const Execution execution : {Execution::Serial, Execution::Threads}) {
    const RunResult result = train(plan, plan.stages(), execution);
    ASSERT_EQ(result.traffic.size(), 6u);
    for (const EdgeTraffic& edge : result.traffic) {
      // 6 mini-batches of 2 micro-batches of 4 samples, 5 values each; a header has 16 + 2·8 bytes.
      const bool compressed = edge.from == 1 && edge.to == 2;
      EXPECT_EQ(edge.messages, 12);
      EXPECT_EQ(edge.value_bytes, 12 * 4 * 5 * 4);
      EXPECT_EQ(edge.sent_bytes, compressed ? 12 * (4 * 5 * 2 + 32) : edge.value_bytes);
    }
  }
}

TEST(Compression, LeavesEvaluationAloneWhereAsked) {
  const auto loss = [](const char* compression) {
    Laboratory laboratory(concat("{pipeline.compression: ", compression, "}"));
    const Plan& plan = laboratory.plan();
    const auto edges = plan.edges();
    Loader loader = plan.evaluation_loader();
    return flat_losses(execute(plan.evaluation, plan.stages(),
                               {.batches = loader,
                                .lr = [](int) { return 0.0; },
                                .minibatches_per_epoch = loader.minibatches(),
                                .edges = edges.empty() ? nullptr : &edges}));
  };
  const auto plain = loss("{name: none}");
  EXPECT_NE(loss("{name: bf16}"), plain);
  EXPECT_EQ(loss("{name: bf16, in_evaluation: false}"), plain);
}

/// Of what crosses an edge no tensor has more values than a mini-batch there: 8 samples of 5.
TEST(Compression, RefusesMessagesThatClaimMoreThanCrosses) {
  for (const char* codec : {"svd, rank: 1", "top_k, fraction: 0.001", "sign", "fp16"}) {
    Laboratory laboratory(
        concat("{pipeline.compression: {name: ", codec, ", backward: {name: ", codec, "}}}"));
    const auto edges = laboratory.plan().edges();
    for (const bool backward : {false, true}) {
      EdgeEnds sender(laboratory.experiment.pipeline.compression, backward ? 2 : 1);
      EdgeEnds& receiver = *edges[backward ? 1 : 2];
      const int from = backward ? 2 : 1, to = backward ? 1 : 2;
      const CodecCall call{.backward = backward};
      for (const auto& [samples, taken] : {std::pair{8, true}, {9, false}}) {
        Tensors message{at::randn({samples, 5})};
        sender.encode(message, to, call);
        if (taken) {
          EXPECT_NO_THROW(receiver.decode(message, from, call)) << codec;
        } else {
          EXPECT_THROW(receiver.decode(message, from, call), Error) << codec;
        }
      }
    }
  }
}

/// Images that are larger in evaluation than in training, 10×10 instead of 8×8.
class LargerInEvaluation final : public Dataset {
 public:
  void open(const DatasetRequest&) override {}
  std::int64_t size(Split) const override { return 16; }
  std::vector<std::int64_t> sample_shape() const override { return {1, 8, 8}; }
  std::int64_t classes() const override { return 3; }
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const std::int64_t side = split == Split::Train ? 8 : 10, n = std::ssize(indices);
    return {.x = {at::ones({n, 1, side, side})}, .y = at::zeros({n}, at::kLong)};
  }
};

TEST(Compression, TakesLargerImagesInEvaluation) {
  Laboratory laboratory(
      "{pipeline.compression: {name: fp16}, pipeline.balance: layers, "
      "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}}");
  laboratory.dataset = std::make_shared<LargerInEvaluation>();
  const Plan& plan = laboratory.plan();
  const auto edges = plan.edges();
  Loader loader = plan.evaluation_loader();
  EXPECT_NO_THROW(execute(plan.evaluation, plan.stages(),
                          {.batches = loader,
                           .lr = [](int) { return 0.0; },
                           .minibatches_per_epoch = loader.minibatches(),
                           .edges = &edges}));
}

std::string problems_of(const std::string& compression) {
  try {
    Laboratory laboratory(concat("{pipeline.compression: ", compression, "}"));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Compression, SaysWhatIsWrongWithItsOptions) {
  EXPECT_NE(problems_of("{name: fp61}").find("'fp61'"), std::string::npos)
      << problems_of("{name: fp61}");
  EXPECT_NE(problems_of("{name: fp16, edges: [3]}").find("from 0 to 2"), std::string::npos);
  EXPECT_NE(problems_of("{name: fp16, otherwise: {name: bf16}}").find("otherwise has no edge left"),
            std::string::npos);
  EXPECT_EQ(problems_of("{name: fp16, edges: [0], otherwise: {name: bf16}}"), "");
}

TEST(Compression, SaysOnlyThatACodecIsUnknownNotThatItsOptionsAre) {
  const std::string text = problems_of("{name: sort_quantisation, bits: 6}");
  EXPECT_EQ(std::ranges::count(text, '\n'), 0) << text;
  EXPECT_NE(text.find("pipeline.compression.name is 'sort_quantisation'"), std::string::npos);
  EXPECT_NE(text.find("did you mean 'sort_quantization'?"), std::string::npos) << text;
  const std::string both =
      problems_of("{name: fp16, forward: {name: fp61, x: 1}, backward: {name: fp16, y: 2}}");
  EXPECT_EQ(both.find("forward.x"), std::string::npos) << both;
  EXPECT_NE(both.find("backward.y"), std::string::npos) << both;
}

TEST(Traffic, AddsUpEdgeByEdge) {
  std::vector<EdgeTraffic> sum{{.from = 0, .to = 1, .messages = 2, .sent_bytes = 5},
                               {.from = 0, .to = 0, .messages = 4, .sent_bytes = 6}};
  add(sum, {{.from = 0, .to = 1, .messages = 1, .sent_bytes = 7},
            {.from = 1, .to = 0},
            {.from = 0, .to = 0, .messages = 2, .sent_bytes = 3}});
  ASSERT_EQ(sum.size(), 3u);
  EXPECT_EQ(sum[0].messages, 3);
  EXPECT_EQ(sum[0].sent_bytes, 12);
  EXPECT_EQ(sum[1].messages, 6);
  EXPECT_EQ(sum[1].sent_bytes, 9);
}

TEST(Traffic, CountsSumsOfStagesBehindTheirEdges) {
  TrafficCount count({.stages = 2, .replicas = 2});
  for (const int replica : {0, 1}) {
    count.summed({.stage = 1, .replica = replica}, {.values = 100, .sent = 7});
    count.sent(1, 0, replica, 10, 10, 0);
    count.sent(0, 1, replica, 20, 5, 0.5);
  }
  const std::vector<EdgeTraffic> all = count.traffic();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].from, 0);
  EXPECT_EQ(all[1].from, 1);
  EXPECT_EQ(all[2],
            (EdgeTraffic{.from = 1, .to = 1, .messages = 2, .value_bytes = 200, .sent_bytes = 14}));
  TrafficCount alone({.stages = 2});
  alone.summed({.stage = 1}, {.values = 100, .sent = 7});
  EXPECT_TRUE(alone.traffic().empty()) << "one replica has nobody to add to";
}

}  // namespace
}  // namespace pipewright::test
