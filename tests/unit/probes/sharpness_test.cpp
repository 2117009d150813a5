// SPDX-License-Identifier: Apache-2.0
// The largest eigenvalue of a Hessian, against Hessians that are written out.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/probes/lanczos.h"
#include "core/probes/probe.h"
#include "core/probes/probes.h"
#include "core/probes/whole_model.h"
#include "core/runtime/devices/memory_count.h"
#include "core/tensors/torch.h"
#include "core/training/whole_model_probes.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

using Eigen::MatrixXd;

at::Tensor tensor_of(const MatrixXd& matrix) {
  at::Tensor tensor = at::empty({matrix.rows(), matrix.cols()}, at::kDouble);
  for (Eigen::Index i = 0; i < matrix.rows(); ++i)
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) tensor[i][j].fill_(matrix(i, j));
  return tensor;
}

double largest_of(const MatrixXd& symmetric) {
  return at::linalg_eigvalsh(tensor_of(symmetric)).max().item<double>();
}

MatrixXd matrix_of_tensor(const at::Tensor& tensor) {
  MatrixXd matrix(tensor.size(0), tensor.size(1));
  for (std::int64_t i = 0; i < tensor.size(0); ++i)
    for (std::int64_t j = 0; j < tensor.size(1); ++j) matrix(i, j) = tensor[i][j].item<double>();
  return matrix;
}

/// Matrices whose largest eigenvalue is not the one of the largest magnitude, too.
TEST(Lanczos, FindsTheLargestEigenvalue) {
  for (const int seed : {1, 2, 3})
    for (const double shift : {0.0, -5.0}) {
      std::srand(static_cast<unsigned>(seed));
      const MatrixXd any = MatrixXd::Random(20, 20);
      const MatrixXd matrix = any + any.transpose() + shift * MatrixXd::Identity(20, 20);
      const at::Tensor as_tensor = tensor_of(matrix);
      const Eigenvalue found =
          largest_eigenvalue([&](const at::Tensor& v) { return as_tensor.mv(v); }, 20,
                             as_tensor.options(), 7, {.tolerance = 1e-10, .products = 100});
      EXPECT_NEAR(found.value, largest_of(matrix), tolerance::kProbes);
      EXPECT_LE(found.error, 1e-10 * std::abs(found.value) + 1e-12);
    }
}

TEST(Lanczos, EndsWithinItsToleranceOrItsProducts) {
  const at::Tensor diagonal = at::arange(1, 1001, at::kDouble);
  const auto product = [&](const at::Tensor& v) { return diagonal * v; };
  const Eigenvalue rough = largest_eigenvalue(product, 1000, diagonal.options(), 1,
                                              {.tolerance = 1e-2, .products = 500});
  EXPECT_LE(std::abs(rough.value - 1000), rough.error + tolerance::kProbes);
  EXPECT_LE(rough.error, 1e-2 * rough.value);
  const Eigenvalue cut =
      largest_eigenvalue(product, 1000, diagonal.options(), 1, {.tolerance = 1e-9, .products = 5});
  EXPECT_EQ(cut.products, 5);
  EXPECT_GT(cut.error, 1e-9 * cut.value);
}

/// A model of two linear layers without activation, and its Hessian's blocks: with the classes'
/// probabilities p, S = diag(p) − p pᵀ and a layer's inputs x̃ = (x, 1), the block of the last layer
/// is the mean of S ⊗ x̃x̃ᵀ, and that of the first the mean of (Vᵀ S V) ⊗ x̃x̃ᵀ, with V the last
/// layer's weight.
struct LinearModel {
  Laboratory laboratory{
      "{train.precision: float64, model: {name: mlp, widths: [6, 4, 3], activation: identity}, "
      "pipeline.stages: 2, probes: [{name: sharpness, tolerance: 1.0e-11, samples: 10}]}"};
  Stages stages = laboratory.plan().stages();
  std::vector<std::pair<std::string, at::Tensor>> state = state_of(stages);
  std::vector<std::pair<std::string, at::Tensor>> divisors;
  Batch batch;

  LinearModel() {
    const std::vector<std::int64_t> indices{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    batch = laboratory.plan().dataset->batch(Split::Train, indices, nullptr);
    batch.x[0] = batch.x[0].to(at::kDouble);
  }

  ModelInstant model() const {
    const Experiment& e = laboratory.experiment;
    return {.layers = e.layers,
            .layers_per_stage = e.layout.balance,
            .loss = *e.loss,
            .state = state,
            .preconditioner = divisors,
            .inputs = batch.x,
            .targets = batch.y};
  }

  std::map<std::pair<int, std::string>, double> measured() const {
    std::map<std::pair<int, std::string>, double> found;
    laboratory.experiment.probes[0].probe->measure_whole(
        model(), [&](int stage, std::string_view quantity, double value) {
          found[{stage, std::string(quantity)}] = value;
        });
    return found;
  }

  const at::Tensor& of(const std::string& name) const {
    for (const auto& [each, tensor] : state)
      if (each == name) return tensor;
    throw std::invalid_argument(name);
  }

  /// The block of a stage, in the order weight [out, in], then bias.
  MatrixXd block(int stage) const {
    const MatrixXd x = matrix_of_tensor(batch.x[0]), w = matrix_of_tensor(of("0.weight")),
                   v = matrix_of_tensor(of("1.weight"));
    const MatrixXd b = matrix_of_tensor(of("0.bias").view({1, -1})),
                   c = matrix_of_tensor(of("1.bias").view({1, -1}));
    const MatrixXd hidden = (x * w.transpose()).rowwise() + b.row(0);
    const MatrixXd logits = (hidden * v.transpose()).rowwise() + c.row(0);
    const MatrixXd inputs = stage == 0 ? x : hidden;
    const Eigen::Index in = inputs.cols(), out = stage == 0 ? w.rows() : v.rows();
    MatrixXd sum = MatrixXd::Zero(out * in + out, out * in + out);
    for (Eigen::Index n = 0; n < x.rows(); ++n) {
      Eigen::VectorXd p = logits.row(n).transpose().array().exp().matrix();
      p /= p.sum();
      const MatrixXd s = MatrixXd(p.asDiagonal()) - p * p.transpose();
      const MatrixXd outer = stage == 0 ? MatrixXd(v.transpose() * s * v) : s;
      Eigen::VectorXd with_one(in + 1);
      with_one << inputs.row(n).transpose(), 1.0;
      const auto place = [&](Eigen::Index o, Eigen::Index i) {
        return i < in ? o * in + i : out * in + o;
      };
      for (Eigen::Index o = 0; o < out; ++o)
        for (Eigen::Index q = 0; q < out; ++q)
          for (Eigen::Index i = 0; i <= in; ++i)
            for (Eigen::Index j = 0; j <= in; ++j)
              sum(place(o, i), place(q, j)) += outer(o, q) * with_one(i) * with_one(j);
    }
    return sum / static_cast<double>(x.rows());
  }
};

/// Float16 may skip the first update of one stage only, whose optimizer then has no divisors.
TEST(Sharpness, IsNotPreconditionedWhereAStageHasNoDivisorsYet) {
  LinearModel linear;
  linear.divisors.emplace_back("1.weight", at::ones_like(linear.of("1.weight")));
  linear.divisors.emplace_back("1.bias", at::ones_like(linear.of("1.bias")));
  const auto found = linear.measured();
  EXPECT_EQ(found.count({1, "largest"}), 1U);
  for (const int stage : {0, 1, kWholeModel})
    EXPECT_EQ(found.count({stage, "preconditioned"}), 0U) << stage;
}

TEST(Sharpness, IsTheLargestEigenvalueOfEachStagesBlock) {
  const LinearModel linear;
  const auto found = linear.measured();
  for (const int stage : {0, 1})
    EXPECT_NEAR(found.at({stage, "largest"}), largest_of(linear.block(stage)), tolerance::kProbes);
  EXPECT_GE(found.at({kWholeModel, "largest"}),
            std::max(found.at({0, "largest"}), found.at({1, "largest"})))
      << "blocks interlace";
  EXPECT_EQ(found.count({0, "preconditioned"}), 0U);
}

TEST(Sharpness, IsDividedByWhatTheOptimizerDividesBy) {
  LinearModel linear;
  for (const auto& [name, tensor] : linear.state)
    linear.divisors.emplace_back(
        name, at::arange(1, tensor.numel() + 1, at::kDouble).div(10).view(tensor.sizes()));
  const auto found = linear.measured();
  for (const int stage : {0, 1}) {
    MatrixXd block = linear.block(stage);
    std::vector<double> divisors;
    for (const char* parameter : {"weight", "bias"})
      for (const auto& [name, tensor] : linear.divisors)
        if (name == concat(stage, ".", parameter))
          for (std::int64_t i = 0; i < tensor.numel(); ++i)
            divisors.push_back(tensor.flatten()[i].item<double>());
    for (Eigen::Index i = 0; i < block.rows(); ++i)
      for (Eigen::Index j = 0; j < block.cols(); ++j)
        block(i, j) /= std::sqrt(divisors[static_cast<std::size_t>(i)] *
                                 divisors[static_cast<std::size_t>(j)]);
    EXPECT_NEAR(found.at({stage, "preconditioned"}), largest_of(block),
                tolerance::kProbes * largest_of(block));
  }
}

/// What it names is what it holds at least, and most of what it holds where one sample makes no
/// activations to speak of: of 160,000 weights and 806 activations.
TEST(Sharpness, NamesTheTensorsOfTheModelsSizeThatItHolds) {
  Laboratory laboratory(
      "{model: {name: mlp, widths: [6, 400, 400, 3]}, pipeline.stages: 2, "
      "probes: [{name: sharpness, samples: 1, products: 5}]}");
  const Stages stages = laboratory.plan().stages();
  const auto state = state_of(stages);
  const Experiment& e = laboratory.experiment;
  double bytes = 0;
  for (const auto& [name, tensor] : state) bytes += static_cast<double>(tensor.nbytes());
  const Batch batch =
      laboratory.plan().dataset->batch(Split::Train, std::vector<std::int64_t>{0}, nullptr);
  std::vector<std::pair<std::string, at::Tensor>> divisors;
  for (const auto& [name, tensor] : state) divisors.emplace_back(name, tensor.abs().add(1));
  const std::vector<std::pair<std::string, at::Tensor>> none;
  for (const bool divided : {false, true}) {
    MemoryCount count(at::kCPU);
    e.probes[0].probe->measure_whole({.layers = e.layers,
                                      .layers_per_stage = e.layout.balance,
                                      .loss = *e.loss,
                                      .state = state,
                                      .preconditioner = divided ? divisors : none,
                                      .inputs = batch.x,
                                      .targets = batch.y},
                                     [](int, std::string_view, double) {});
    const double held = static_cast<double>(count.peak()) / bytes;
    const int named = e.probes[0].probe->whole_copies(divided);
    EXPECT_GE(held, named) << divided;
    EXPECT_LE(held, 1.5 * named) << divided;
  }
}

/// Attention by an operator of LibTorch that has no second derivative, of the rows of the input.
class OnceDifferentiable final : public Layer {
 public:
  explicit OnceDifferentiable(LayerPtr inner) : inner_(std::move(inner)) {
    Layer::set_name(inner_->name());
  }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor rows =
        inner_->forward(input, parameters, buffers, pass).view({1, 1, input.size(0), -1});
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(rows, rows, rows))
        .view({input.size(0), -1});
  }

 private:
  LayerPtr inner_;
};

TEST(Sharpness, IsRefusedWhereALayerHasNoSecondDerivative) {
  LinearModel linear;
  const Probe& probe = *linear.laboratory.experiment.probes[0].probe;
  EXPECT_NO_THROW(probe.try_on(linear.model()));
  LayerPtr& first = linear.laboratory.experiment.layers[0];
  first = std::make_shared<OnceDifferentiable>(first);
  EXPECT_ANY_THROW(probe.try_on(linear.model()));
  const TensorFile weights{.tensors = linear.state, .metadata = {}};
  try {
    try_whole_model_probes(linear.laboratory.plan(), weights);
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Experiment);
    EXPECT_NE(error.message().find("probes[0] sharpness needs second derivatives, which a layer of "
                                   "this model does not have: "),
              std::string::npos)
        << error.message();
  }
}

TEST(Sharpness, IsKnownForModelsOfImagesAndText) {
  for (const char* model :
       {"{name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
        "{name: resnet18, size: 8, width: 0.125, classes: 3}",
        "{name: encoder, layers: 2, width: 8, heads: 2, feed_forward: 12, tokens: 5}"}) {
    Laboratory laboratory(concat("{model: ", model,
                                 ", pipeline.stages: 2, probes: [{name: sharpness, samples: 4, "
                                 "products: 8}]}"));
    const Stages stages = laboratory.plan().stages();
    const auto state = state_of(stages);
    const Experiment& e = laboratory.experiment;
    const std::vector<std::int64_t> indices{0, 1, 2, 3};
    const Batch batch = laboratory.plan().dataset->batch(Split::Train, indices, nullptr);
    const ModelInstant drained{.layers = e.layers,
                               .layers_per_stage = e.layout.balance,
                               .loss = *e.loss,
                               .state = state,
                               .preconditioner = {},
                               .inputs = batch.x,
                               .targets = batch.y};
    int rows = 0;
    e.probes[0].probe->measure_whole(drained, [&](int, std::string_view, double value) {
      EXPECT_TRUE(std::isfinite(value)) << model;
      ++rows;
    });
    EXPECT_EQ(rows, 3) << model;
  }
}

/// Notes what every stage holds after each update, beside the probes.
class StateRecorder final : public Observer {
 public:
  explicit StateRecorder(Probes& probes) : probes_(probes) {}
  std::map<int, std::map<std::string, at::Tensor>> after;  ///< [mini-batch]

  void began(const Instruction& i, Stage& stage) override { probes_.began(i, stage); }
  void backward(const Backward& b) override { probes_.backward(b); }
  void ended(const Instruction& i, Stage& stage, const Weighting& w) override {
    probes_.ended(i, stage, w);
  }
  void updates(const Instruction& i, Stage& stage) override { probes_.updates(i, stage); }
  void updated(const Instruction& i, Stage& stage) override {
    for (const auto& [name, tensor] : stage.named_state())
      after[i.action.minibatch][name] = tensor.clone();
    probes_.updated(i, stage);
  }
  bool compares(const Action& pass) const override { return probes_.compares(pass); }
  void compared(const Action& p, int peer, const Tensors& s, const Tensors& a) override {
    probes_.compared(p, peer, s, a);
  }

 private:
  Probes& probes_;
};

/// Also while the pipeline is full, in any execution, whenever a stage makes the update.
TEST(Sharpness, HasTheWeightsThatTheUpdatesOfItsMiniBatchHaveMade) {
  for (const char* scheme : {"{name: pipedream}", "{name: gpipe}", "{name: spectrain}"})
    for (const char* optimizer : {"{name: sgd, momentum: 0.9}", "{name: adam}"}) {
      Laboratory laboratory(concat("{scheme: ", scheme, ", optimizer: ", optimizer,
                                   ", probes: [{name: sharpness, every: 2}]}"));
      const Plan& plan = laboratory.plan();  // 6 mini-batches, and 4 stages
      Probes probes(laboratory.experiment.probes, plan.training);
      probes.begin(0);
      StateRecorder seen(probes);
      const Stages stages = plan.stages();
      train(plan, stages, Execution::Serial, nullptr, 0, nullptr, &seen);
      std::map<int, std::set<int>> copied;
      for (const StageCopy& copy : probes.take_copies()) {
        copied[static_cast<int>(copy.minibatch)].insert(copy.stage);
        for (const auto& [name, tensor] : copy.state)
          EXPECT_TRUE(tensor.equal(seen.after.at(static_cast<int>(copy.minibatch)).at(name)))
              << scheme << " " << copy.minibatch << " " << name;
        EXPECT_EQ(copy.divisors.empty(), std::string_view(optimizer).starts_with("{name: sgd"));
      }
      const std::set<int> all{0, 1, 2, 3};
      EXPECT_EQ(copied, (std::map<int, std::set<int>>{{0, all}, {2, all}, {4, all}})) << scheme;
      EXPECT_TRUE(probes.take_copies().empty());

      Probes again(laboratory.experiment.probes, plan.training);
      again.begin(0);
      const Stages threaded = plan.stages();
      train(plan, threaded, Execution::Threads, nullptr, 0, nullptr, &again);
      EXPECT_EQ(difference(stages, threaded), "");
      std::size_t copies = 0;
      for (const StageCopy& copy : again.take_copies()) {
        ++copies;
        for (const auto& [name, tensor] : copy.state)
          EXPECT_TRUE(tensor.equal(seen.after.at(static_cast<int>(copy.minibatch)).at(name)));
      }
      EXPECT_EQ(copies, 12U);
    }
}

TEST(Sharpness, IsCountedBeforeItIsMeasured) {
  Laboratory laboratory(
      "{train.epochs: 3, train.checkpoint.every: 0, probes: [{name: norms, every: 5}, "
      "{name: sharpness, every: 4, samples: 7, products: 9}]}");
  const Plan& plan = laboratory.plan();  // 3 epochs of 6 mini-batches
  EXPECT_EQ(measured_minibatches(laboratory.experiment, 0, 18),
            (std::vector<std::int64_t>{0, 4, 8, 12, 16}));
  EXPECT_EQ(measured_minibatches(laboratory.experiment, 5, 8), (std::vector<std::int64_t>{}));
  EXPECT_EQ(
      announcement(plan, 0, 1024),
      (std::vector<std::string>{
          "probes will measure: norms 4 mini-batches, sharpness 5 mini-batches",
          "probe sharpness: each measurement takes 7 samples and at most 9 products of the "
          "Hessian with a vector for each of 5 eigenvalues, twice as many eigenvalues with "
          "an optimizer that divides steps; the weights of up to 2 mini-batches (2.0 KiB) are "
          "kept until the pipeline is drained"}));
  EXPECT_EQ(announcement(plan, 12, 1024).front(),
            "probes will measure: norms 1 mini-batch, sharpness 2 mini-batches");
}

}  // namespace
}  // namespace pipewright::test
