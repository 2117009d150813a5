// SPDX-License-Identifier: Apache-2.0
// Images in channels-last memory: the same numbers in another order, with the same bits in every
// execution, however the model is cut, recomputed and its backwards are split.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/runtime/laboratory.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/tolerances.h"

namespace pipewright::test {
namespace {

const std::vector<std::string> kImageModels{
    "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}",
    "model: {name: resnet18, size: 8, width: 0.125, classes: 3, cut: layers}, "
    "pipeline.balance: layers",
    // flattens maps of many pixels before its first linear layer
    "model: {name: alexnet, size: 63, width: 0.02, classes: 3}",
};

/// The other kinds of layers in reduced sizes: concatenations, depthwise convolutions, cells, maps.
const std::vector<std::string> kAllImageModels{
    kImageModels[0],
    kImageModels[1],
    kImageModels[2],
    "model: {name: vgg16, width: 0.05, classes: 3}",
    "model: {name: vgg16, width: 0.02, head: classifier, batch_norm: false, classes: 3}",
    "model: {name: resnet50, size: 8, width: 0.05, stem: cifar, cut: blocks, classes: 3}",
    "model: {name: mobilenet_v2, size: 16, width: 0.05, classes: 3}",
    "model: {name: densenet121, size: 8, width: 0.05, classes: 3}",
    "model: {name: googlenet, size: 8, width: 0.05, classes: 3}",
    "model: {name: inception_v3, size: 75, width: 0.02, classes: 3, channels: 1}",
    "model: {name: amoebanet_d, cells: 3, filters: 8, size: 32, classes: 3}",
    "model: {name: unet, size: 16, depth: 2, base_channels: 4, convolutions: 1}, dataset.classes: "
    "0, loss: {name: "
    "binary_cross_entropy}",
};

std::string changed_format(const std::string& format, const std::string& changes) {
  const bool says = changes.find("dataset.train") != std::string::npos;
  return concat("{pipeline.memory_format: ", format, says ? "" : ", dataset.train: 40", ", ",
                changes, "}");
}

struct TrainedImages {
  Stages stages;
  std::vector<double> losses;
};

TrainedImages trained_images(const std::string& format, const std::string& changes) {
  Laboratory laboratory(changed_format(format, changes));
  Stages stages = laboratory.plan().stages();
  const RunResult result = train(laboratory.plan(), stages, Execution::Serial);
  return {std::move(stages), flat_losses(result)};
}

void expect_same_bits_in_channels_last(const SchemeCase& scheme, const char* precision) {
  const bool one_stage = scheme.name == "data_parallel";
  Laboratory laboratory(changed_format(
      "channels_last", concat("scheme: ", scheme_text(scheme), ", train.precision: ", precision,
                              ", pipeline.microbatches: 4, pipeline.stages: ", one_stage ? 1 : 4,
                              ", pipeline.replicas: ", one_stage ? 2 : 1, ", ", kImageModels[0])));
  expect_same_bits(laboratory, concat(scheme.name, " ", precision));
}

TEST(MemoryFormat, GivesTheSameBitsInEveryExecution) {
  for (const SchemeCase& scheme : scheme_of_each_kind())
    expect_same_bits_in_channels_last(scheme, "float32");
}

TEST(MemoryFormat, GivesTheSameBitsInEveryExecutionForEveryScheme) {
  for (const char* precision : {"float32", "bfloat16"})
    for (const SchemeCase& scheme : first_of_each_scheme())
      expect_same_bits_in_channels_last(scheme, precision);
}

TEST(MemoryFormat, GivesTheSameBitsWithReplicasAndWithCodecs) {
  for (const char* more :
       {"pipeline.replicas: 2", "pipeline.replicas: 2, train.precision: bfloat16",
        "pipeline.replicas: 2, pipeline.gradient_compression: {name: powersgd, rank: 1}",
        "pipeline.compression: {name: uniform, per: channel}",
        "train.precision: bfloat16, pipeline.compression: {name: sort_quantization, backward: "
        "{name: "
        "top_k, fraction: 0.5, feedback: tensor}}"})
    for (const std::string& model : kImageModels) {
      Laboratory laboratory(changed_format(
          "channels_last", concat("scheme: {name: spectrain}, ", more, ", ", model)));
      expect_same_bits(laboratory, concat(more, " ", model));
    }
}

void expect_the_same_learned(const char* precision, const std::string& model) {
  const std::string rest =
      concat(", pipeline.microbatches: 4, train.precision: ", precision, ", ", model);
  const auto learned = [&](const std::string& how) {
    return trained_images("channels_last", how + rest);
  };
  const TrainedImages plain = learned("scheme: {name: one_f_one_b}");
  const std::string what = concat(precision, " ", model);
  EXPECT_EQ(plain.losses, learned("scheme: {name: one_f_one_b}, pipeline.stages: 1").losses)
      << what;
  for (const char* how : {"scheme: {name: one_f_one_b}, pipeline.recompute: always",
                          "scheme: {name: zb_h1}", "scheme: {name: interleaved}"})
    EXPECT_EQ(difference(plain.stages, learned(how).stages), "") << how << " " << what;
}

TEST(MemoryFormat, LearnsTheSameHoweverTheModelIsCutRecomputedAndSplit) {
  for (const char* precision : {"float32", "bfloat16"})
    expect_the_same_learned(precision, kImageModels[0]);
}

TEST(MemoryFormat, LearnsTheSameHoweverAnyModelIsCutRecomputedAndSplit) {
  for (const char* precision : {"float32", "bfloat16"})
    for (const std::string& model : kImageModels) expect_the_same_learned(precision, model);
}

/// The largest difference of two trainings in float64: of losses, and of weights and buffers, as a
/// part of the largest number in a tensor.
double largest_difference(const std::string& rest) {
  const TrainedImages a = trained_images("contiguous", rest);
  const TrainedImages b = trained_images("channels_last", rest);
  const auto of_a = state_of(a.stages), of_b = state_of(b.stages);
  double largest = of_a.size() == of_b.size() ? 0 : INFINITY;
  for (std::size_t m = 0; m < a.losses.size(); ++m)
    largest = std::max(largest, std::abs(a.losses[m] - b.losses.at(m)));
  for (std::size_t i = 0; i < of_a.size() && i < of_b.size(); ++i) {
    const double size = std::max(1.0, of_a[i].second.abs().max().item<double>());
    const double apart = (of_a[i].second - of_b[i].second).abs().max().item<double>() / size;
    largest = apart <= largest ? largest : apart;  // takes what is not a number, too
  }
  return largest;
}

TEST(MemoryFormat, ChangesNothingButTheOrderOfSums) {
  for (const std::string& model : kImageModels)
    EXPECT_LE(largest_difference(concat("train.precision: float64, ", model)),
              tolerance::kTrainedElsewhere)
        << model;
}

/// A single update, because batch norm of few samples in dozens of layers amplifies rounding.
TEST(MemoryFormat, ChangesNothingButTheOrderOfSumsInAnyModel) {
  for (const std::string& model : kAllImageModels) {
    EXPECT_LE(largest_difference(concat("train.precision: float64, dataset.train: 8, ", model)),
              tolerance::kTrainedElsewhere)
        << model;
  }
}

/// Weights that a single update in bfloat16 has moved, in that format.
std::vector<at::Tensor> updates_in_bfloat16(const std::string& format, const std::string& model) {
  const std::string rest = concat("train.precision: bfloat16, dataset.train: 8, ", model);
  Laboratory laboratory(changed_format(format, rest));
  const auto before = state_of(laboratory.plan().stages());
  const TrainedImages after = trained_images(format, rest);
  std::vector<at::Tensor> updates;
  for (std::size_t i = 0; const auto& [name, tensor] : state_of(after.stages))
    updates.push_back(tensor - before[i++].second);
  return updates;
}

/// Of models that have few layers: behind batch norm of few samples in dozens of layers,
/// gradients in bfloat16 are known to a fifth of themselves only, in either format.
TEST(MemoryFormat, ChangesRoundingOnlyInBfloat16) {
  for (const std::string& model : {kImageModels[0], kImageModels[2]}) {
    const auto a = updates_in_bfloat16("contiguous", model);
    const auto b = updates_in_bfloat16("channels_last", model);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_LE((a[i] - b[i]).norm().item<double>(),
                tolerance::kOtherRoundings * a[i].norm().item<double>())
          << model << " " << i;
  }
}

/// Counts copies of tensors with those sizes, by whichever operation. Copies within LibTorch's
/// backward of a convolution are counted apart: their number depends on the kernel that oneDNN has
/// for the processor.
class CopiesOf {
 public:
  explicit CopiesOf(std::vector<std::vector<std::int64_t>> sizes) : sizes_(std::move(sizes)) {
    counting_ = this;
    callback_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true));
  }
  ~CopiesOf() {
    at::removeCallback(callback_);
    counting_ = nullptr;
  }
  CopiesOf(const CopiesOf&) = delete;
  CopiesOf& operator=(const CopiesOf&) = delete;
  int copies() const { return copies_; }
  int within_convolutions() const { return within_convolutions_; }

 private:
  static bool is_convolution(const at::RecordFunction& call) {
    return std::string_view(call.name()) == "aten::convolution_backward";
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (is_convolution(call)) ++counting_->depth_;
    if (std::string_view(call.name()) != "aten::copy_") return nullptr;
    const at::Tensor& into = call.inputs()[0].toTensor();
    if (std::ranges::find(counting_->sizes_, into.sizes()) != counting_->sizes_.end())
      ++(counting_->depth_ > 0 ? counting_->within_convolutions_ : counting_->copies_);
    return nullptr;
  }
  static void end(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
    if (is_convolution(call)) --counting_->depth_;
  }

  static thread_local CopiesOf* counting_;
  std::vector<std::vector<std::int64_t>> sizes_;
  at::CallbackHandle callback_ = 0;
  int depth_ = 0;
  int copies_ = 0, within_convolutions_ = 0;
};
thread_local CopiesOf* CopiesOf::counting_ = nullptr;

/// Sizes of the weights of a stage's convolutions.
std::vector<std::vector<std::int64_t>> convolutions_of(const Stage& stage) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const FlatLayout::Entry& entry : stage.layout().entries)
    if (entry.shape.size() == 4) sizes.push_back(entry.shape);
  return sizes;
}

/// In channels-last memory, and in bfloat16 on processors that multiply tiles of it, LibTorch's
/// backward of a convolution itself reorders the gradient, once or twice.
TEST(MemoryFormat, NeedsNoCopyOfAWeightOrItsGradientInAStep) {
  for (const char* format : {"contiguous", "channels_last"})
    for (const char* precision : {"float32", "bfloat16"})
      for (const std::string& model : kImageModels) {
        const std::string what = concat(format, " ", precision, " ", model);
        Laboratory laboratory(changed_format(
            format, concat("pipeline.stages: 1, train.precision: ", precision, ", ", model)));
        Loader loader = laboratory.plan().training_loader(0, 1);
        const Share share = loader.share(0, 0, 0);
        const Tensors inputs = loader.inputs(0, share, at::kCPU);
        const at::Tensor targets = loader.targets(0, share, at::kCPU);
        const Stages stages = laboratory.plan().stages();
        Stage& stage = *stages[0];
        stage.use({0, 0, 0});
        const CopiesOf weights(convolutions_of(stage));
        stage.forward(0, inputs, {}, false);
        stage.final_loss(0, targets);
        stage.backward(0, {.own_loss = true});
        const bool plain = concat(format, precision) == "contiguousfloat32";
        EXPECT_LE(weights.within_convolutions(), plain ? 0 : 2 * std::ssize(convolutions_of(stage)))
            << what;
        for (std::size_t i = 0; i < stage.gradients().size(); ++i)
          EXPECT_TRUE(stage.layout()
                          .entries[i]
                          .in_order(stage.gradients()[i])
                          .is_alias_of(stage.gradients()[i]))
              << what << " " << stage.layout().entries[i].name;
        stage.update(/*in_place=*/true, 0.1);
        EXPECT_EQ(weights.copies(), 0) << what;
      }
}

TEST(MemoryFormat, BeginsWithTheSameWeightsLaidOutForConvolutions) {
  Laboratory contiguous(changed_format("contiguous", kImageModels[1]));
  Laboratory last(changed_format("channels_last", kImageModels[1]));
  const Stages a = contiguous.plan().stages(), b = last.plan().stages();
  EXPECT_EQ(difference(a, b), "");
  std::size_t convolutions = 0;
  for (const auto& stage : b)
    for (const at::Tensor& leaf : stage->weights().leaves())
      if (leaf.dim() == 4) {
        EXPECT_TRUE(leaf.is_contiguous(at::MemoryFormat::ChannelsLast));
        convolutions += leaf.is_contiguous() ? 0 : 1;
      }
  EXPECT_GT(convolutions, 0U);
}

/// What a backward computes with the forward's weights while the stage has others already.
TEST(MemoryFormat, ComputesBackwardsWithTheWeightsThatAreInstalled) {
  for (const char* format : {"contiguous", "channels_last"})
    for (const auto& [precision, model] :
         {std::pair("float32", kImageModels[0]), std::pair("float32", kImageModels[2]),
          std::pair("bfloat16", kImageModels[0]), std::pair("bfloat16", kImageModels[2])}) {
      Laboratory laboratory(changed_format(
          format, concat("pipeline.stages: 1, train.precision: ", precision, ", ", model)));
      Loader loader = laboratory.plan().training_loader(0, 1);
      const Share share = loader.share(0, 0, 0);
      const auto gradients = [&](bool updated, int backward_version) {
        const Stages stages = laboratory.plan().stages();
        Stage& stage = *stages[0];
        const at::Tensor targets = loader.targets(0, share, at::kCPU);
        const auto forward = [&](int id) {
          stage.use({0, 0, 0});
          stage.forward(id, loader.inputs(0, share, at::kCPU), {}, false);
          stage.final_loss(id, targets);
        };
        forward(0);
        if (updated) {
          forward(1);
          stage.backward(1, {.own_loss = true});
          stage.update(/*in_place=*/false, /*lr=*/0.5);
        }
        stage.use({backward_version, 0, 0});
        stage.backward(0, {.own_loss = true});
        return stage.gradients();
      };
      const auto fresh = gradients(false, 0), stashed = gradients(true, 0),
                 vanilla = gradients(true, 1);
      std::size_t others = 0;
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        EXPECT_TRUE(at::equal(fresh[i], stashed[i])) << format << " " << precision << " " << i;
        others += at::equal(fresh[i], vanilla[i]) ? 0 : 1;
      }
      EXPECT_GT(others, 0U) << "the new weights were not used";
    }
}

}  // namespace
}  // namespace pipewright::test
