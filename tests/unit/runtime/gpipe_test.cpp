// SPDX-License-Identifier: Apache-2.0
// torchgpipe's models as pipelines: whatever the cut, the mode and the execution, the numbers that
// were measured with it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/nn/layers.h"
#include "core/nn/skips.h"
#include "core/runtime/executor.h"
#include "core/schedule/builders.h"
#include "core/schedule/prove.h"
#include "core/schedule/rewrites/recompute.h"
#include "core/tensors/torch.h"
#include "tests/unit/models/filled.h"
#include "tests/unit/models/model_fixture.h"
#include "tests/unit/nn/layers_fixture.h"
#include "tests/unit/optim/optimizers_elsewhere.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

/// mean(out²), or mean(out).
class Measure final : public Loss {
 public:
  explicit Measure(bool squared) : squared_(squared) {}
  at::Tensor operator()(const at::Tensor& output, const at::Tensor&) const override {
    return (squared_ ? output.square() : output).mean();
  }

 private:
  bool squared_;
};

/// One mini-batch in micro-batches.
class OneBatch final : public Batches {
 public:
  OneBatch(at::Tensor x, int microbatches) : x_(std::move(x)), microbatches_(microbatches) {}
  Share share(int, int, int microbatch) const override {
    const Slice slice = slice_of(x_.size(0), microbatches_, microbatch);
    return {slice.begin, slice.size, x_.size(0), x_.size(0)};
  }
  at::Tensor targets(int, const Share&, at::Device) override { return {}; }
  Tensors inputs(int, const Share& share, at::Device) override {
    return {x_.narrow(0, share.first_sample, share.samples).contiguous()};
  }

 private:
  at::Tensor x_;
  int microbatches_;
};

struct Case {
  std::vector<std::int64_t> balance;
  Recomputation recompute = Recomputation::Never;
  Execution execution = Execution::Serial;
  RunningStatistics statistics = RunningStatistics::PerMicrobatch;
  int microbatches = 2;
};

struct Measured {
  double loss = 0;
  double gradient = 0, gradients = 0, sum = 0;  ///< norm of all; sum of norms; sum of elements
  double statistics = 0;
};

/// Parameters as `parameters` gives them; one step at learning rate 1 shows the gradient.
Measured measured(const std::vector<LayerPtr>& layers,
                  const std::function<at::Tensor(std::size_t, const ParameterSpec&)>& parameters,
                  const at::Tensor& x, const Case& c, const Loss& loss) {
  const auto sgd = make_optimizer("sgd", "{}");
  const auto count = static_cast<int>(c.balance.size());
  std::vector<std::unique_ptr<Stage>> stages;
  std::vector<at::Tensor> before;
  std::size_t next = 0, parameter = 0;
  for (int k = 0; k < count; ++k) {
    const auto first = layers.begin() + static_cast<std::ptrdiff_t>(next);
    const std::int64_t size = c.balance[static_cast<std::size_t>(k)];
    stages.push_back(std::make_unique<Stage>(StageParts{.index = k,
                                                        .last = k == count - 1,
                                                        .layers = {first, first + size},
                                                        .options = x.scalar_type(),
                                                        .optimizer = sgd.get(),
                                                        .loss = &loss,
                                                        .running_statistics = c.statistics},
                                             1));
    auto named = stages.back()->named_parameters();
    auto tensor = named.begin();
    for (auto layer = first; layer != first + size; ++layer)
      for (const ParameterSpec& spec : (*layer)->parameters()) {
        tensor->second.copy_(parameters(parameter++, spec));
        before.push_back(tensor++->second.clone());
      }
    next += static_cast<std::size_t>(size);
  }
  const PipelineShape shape{
      .stages = count, .microbatches = c.microbatches, .skips = skips_between(layers, c.balance)};
  OneBatch batches(x, c.microbatches);
  const Program program = compile(
      prove(with_recomputation(pipeline_schedule(shape, {.fill_drain = true}), c.recompute)));
  const RunResult result =
      execute(program, stages,
              {.batches = batches, .lr = [](int) { return 1.0; }, .execution = c.execution});
  Measured m{.loss = result.losses[0][0]};
  double squares = 0;
  auto old = before.begin();
  for (const auto& stage : stages) {
    for (const auto& [name, now] : stage->named_parameters()) {
      const at::Tensor step = *old++ - now;
      const double norm = step.norm().item<double>();
      m.sum += step.sum().item<double>();
      squares += norm * norm;
      m.gradients += norm;
    }
    for (const auto& [name, buffer] : stage->named_buffers())
      m.statistics += buffer.sum().item<double>();
  }
  m.gradient = std::sqrt(squares);
  return m;
}

void expect_near(double value, double golden, const std::string& what) {
  EXPECT_NEAR(value, golden, tolerance::kTenDigits * std::abs(golden)) << what;
}

std::string text_of(const Case& c) {
  return concat(c.balance.size(), " stages, mode ", static_cast<int>(c.recompute), ", execution ",
                static_cast<int>(c.execution));
}

at::Tensor filled_parameter(std::size_t number, const ParameterSpec& spec) {
  return filled(static_cast<std::uint32_t>(number), spec);
}

const std::vector<std::int64_t> kEightWays{26, 22, 33, 44, 44, 66, 66, 69};

TEST(GPipeGolden, ResNet101AtAnyCutInAnyMode) {
  const auto layers =
      make_model("resnet101", "{cut: layers, stem: imagenet, classes: 10, size: 64}")->layers();
  const Measure loss(true);
  using enum Recomputation;
  using enum RunningStatistics;
  const std::vector<Case> cases{{kEightWays, ExceptLast, Execution::Threads, PerMicrobatch},
                                {{140, 230}, Always, Execution::Serial, DeferredBiased},
                                {kEightWays, ExceptLast, Execution::Serial, PerPass},
                                {kEightWays, Always, Execution::Threads, PerPass}};
  for (const Case& c : cases) {
    const Measured m =
        measured(layers, filled_parameter, filled(999, at::IntArrayRef{4, 3, 64, 64}), c, loss);
    expect_near(m.loss, 2.43173896417, text_of(c));
    expect_near(m.gradient, 9201.60660998, text_of(c));
    expect_near(m.statistics,
                c.statistics == DeferredBiased  ? 60231.05705
                : c.statistics == PerMicrobatch ? 68254.5002
                : c.recompute == ExceptLast     ? 74842.90037
                                                : 80865.93887,
                text_of(c));
  }
}

/// The first batch norm sees the same numbers whether its mini-batch is cut or not.
TEST(GPipe, MovesStatisticsOfACutMiniBatchAsOfAWholeOne) {
  const auto first_statistics = [](const std::string& changes) {
    Laboratory laboratory(
        concat("{scheme: {name: gpipe}, dataset.train: 8, pipeline.stages: 2, train.precision: "
               "float64, model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}, ",
               changes, "}"));
    const Stages stages = laboratory.plan().stages();
    train(laboratory.plan(), stages, Execution::Serial);
    std::vector<at::Tensor> running;
    for (const auto& [name, buffer] : stages[0]->named_buffers()) running.push_back(buffer);
    return running;
  };
  const auto whole = first_statistics("pipeline.microbatches: 1");
  for (const char* recompute : {"never", "always", "except_last"}) {
    const auto cut = first_statistics(
        concat("pipeline.microbatches: 3, pipeline.batch_norm: deferred, pipeline.recompute: ",
               recompute));
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_LT(relative_error(cut[i], whole[i]), kFloat64Relative) << recompute;
    EXPECT_GT(relative_error(cut[2], whole[2]), 1e-6) << "the second one's input differs";
  }
}

TEST(GPipeGolden, AmoebaNetDInThreeStages) {
  const auto layers = make_model("amoebanet_d", "{classes: 10, cells: 3, filters: 64}")->layers();
  const Measure loss(true);
  for (const Case& c : {Case{{3, 3, 3}, Recomputation::ExceptLast, Execution::Threads}}) {
    const Measured m =
        measured(layers, filled_parameter, filled(999, at::IntArrayRef{4, 3, 224, 224}), c, loss);
    expect_near(m.loss, 0.0804988582941, text_of(c));
    expect_near(m.gradient, 4.99607614253, text_of(c));
  }
}

/// torchgpipe's test that a pipeline is transparent: the sum of all gradients, given to 7 digits.
TEST(GPipeGolden, FourLinearLayersInTwoStages) {
  at::manual_seed(0);
  const at::Tensor x = at::rand({8, 1}).to(at::kDouble);
  std::vector<at::Tensor> weights;
  std::vector<LayerPtr> layers;
  for (const auto& [in, out] : {std::pair{1, 2}, {2, 4}, {4, 2}, {2, 1}}) {
    const double bound = 1 / std::sqrt(static_cast<double>(in));  // torch's
    weights.push_back(at::empty({out, in}).uniform_(-bound, bound));
    weights.push_back(at::empty({out}).uniform_(-bound, bound));
    layers.push_back(linear(in, out));
    layers.back()->set_name(std::to_string(layers.size()));
  }
  const Case c{.balance = {2, 2}, .execution = Execution::Threads, .microbatches = 4};
  const Measured m = measured(
      layers, [&](std::size_t number, const ParameterSpec&) { return weights[number]; }, x, c,
      Measure(false));
  EXPECT_NEAR(m.sum, -3.354963, tolerance::kTorchgpipeSum);
}

/// torchgpipe's test of skip connections: three convolutions, the input added to the last one's
/// output. The norm of the output is its number; float32 sums of 4.5 million terms lost digits of
/// it, and three of the gradients', so ours, in float64, are held against the expression itself.
TEST(GPipeGolden, ThreeConvolutionsAndASkip) {
  at::manual_seed(0);
  const double bound = 1 / std::sqrt(3.0);  // torch's, of three input channels
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(at::empty({3, 3, 1, 1}).uniform_(-bound, bound));
    weights.push_back(at::empty({3}).uniform_(-bound, bound));
  }
  const at::Tensor x = at::rand({30, 3, 224, 224}).to(at::kDouble);
  for (at::Tensor& weight : weights) weight = weight.to(at::kDouble).set_requires_grad(true);
  at::Tensor y = x;
  for (std::size_t i = 0; i < 6; i += 2) y = at::conv2d(y, weights[i], weights[i + 1]);
  y = y + x;
  EXPECT_NEAR(y.norm().item<double>(), 1039.2144, tolerance::kTorchgpipeNorm);
  double gradients = 0;
  for (const at::Tensor& gradient : torch::autograd::grad({y.mean()}, weights))
    gradients += gradient.norm().item<double>();
  const auto convolution_1x1 = [] { return convolution(3, 3, {.kernel = 1}); };
  const std::vector<LayerPtr> layers{
      sequence({{"stash", stash()}, {"", convolution_1x1()}}), convolution_1x1(),
      sequence({{"", convolution_1x1()}, {"add", add_stashed(nullptr, Activation::Identity)}})};
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->set_name(std::to_string(i));
  const Measure loss(false);
  for (const std::vector<std::int64_t>& balance :
       std::vector<std::vector<std::int64_t>>{{3}, {1, 2}, {2, 1}, {1, 1, 1}})
    for (const Recomputation recompute :
         {Recomputation::Never, Recomputation::Always, Recomputation::ExceptLast}) {
      const Case c{balance, recompute, Execution::Threads, RunningStatistics::PerMicrobatch, 3};
      const Measured m = measured(
          layers,
          [&](std::size_t number, const ParameterSpec&) { return weights[number].detach(); }, x, c,
          loss);
      expect_near(m.loss, y.mean().item<double>(), text_of(c));
      expect_near(m.gradients, gradients, text_of(c));
    }
}

}  // namespace
}  // namespace pipewright::test
