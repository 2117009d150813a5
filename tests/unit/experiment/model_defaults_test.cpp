// SPDX-License-Identifier: Apache-2.0
// What an experiment leaves out of its model follows from the data set.
#include "core/experiment/model_defaults.h"

#include <gtest/gtest.h>

#include "core/base/registry.h"
#include "core/experiment/reading.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright::test {
namespace {

/// The section `model` of the resolved file.
Value model_of(const std::string& text) {
  return *read_experiment(parse_yaml(text, "f.yaml")).resolved.find("model");
}

void expect_options(const std::string& text, const std::string& expected) {
  const Value model = model_of(text), wanted = parse_yaml(expected, "expected");
  for (const auto& [name, value] : wanted.fields) {
    const Value* const found = model.find(name);
    ASSERT_NE(found, nullptr) << name << " in " << text;
    EXPECT_EQ(to_json(*found), to_json(value)) << name << " of " << text;
  }
}

TEST(ModelDefaults, FollowFromTheDataSet) {
  expect_options("dataset: {name: digits}\nmodel: {name: cnn}",
                 "{classes: 10, channels: 1, size: 8}");
  expect_options("dataset: {name: mnist}\nmodel: {name: mlp}", "{widths: [784, 48, 48, 32, 10]}");
  expect_options("dataset: {name: cifar100}\nmodel: {name: resnet18}",
                 "{classes: 100, channels: 3, size: 32}");
  expect_options("dataset: {name: cifar100, labels: coarse}\nmodel: {name: resnet18}",
                 "{classes: 20}");
  expect_options("dataset: {name: tiny_imagenet}\nmodel: {name: vgg16}",
                 "{classes: 200, size: 64}");
  expect_options("dataset: {name: food101, size: 96}\nmodel: {name: mobilenet_v2}",
                 "{classes: 101, size: 96}");
  expect_options("dataset: {name: imdb, tokens: 40}\nmodel: {name: residual_lstm}",
                 "{vocabulary: 10000, tokens: 40, classes: 2}");
  expect_options("dataset: {name: text, tokens: 64}\nmodel: {name: gpt}",
                 "{tokens: 64, vocabulary: 50257}");
  expect_options(
      "dataset: {name: fashion_mnist}\nmodel: {name: sequential, layers: [flatten, {linear: 10}]}",
      "{input: [1, 28, 28]}");
  expect_options("dataset: {name: synthetic, shape: [3, 48, 48], classes: 7}\nmodel: {name: cnn}",
                 "{classes: 7, channels: 3, size: 48}");
}

TEST(ModelDefaults, LeaveWhatIsGiven) {
  expect_options("dataset: {name: cifar100}\nmodel: {name: resnet18, classes: 120}",
                 "{classes: 120, size: 32}");
  expect_options("dataset: {name: mnist}\nmodel: {name: mlp, widths: [784, 5, 10]}",
                 "{widths: [784, 5, 10]}");
}

TEST(ModelDefaults, StayWhereTheDataSetSaysNothingOrWhatTheModelCannotBe) {
  expect_options("dataset: {name: synthetic}\nmodel: {name: resnet18}", "{classes: 10, size: 32}");
  expect_options("dataset: {name: digits}\nmodel: {name: inception_v3}",
                 "{classes: 10, channels: 1, size: 299}");  // images of 75 pixels or more
}

TEST(ModelDefaults, AreTheSameFromTheResolvedFile) {
  const Experiment e =
      read_experiment(parse_yaml("dataset: {name: cifar100}\nmodel: {name: resnet18}", "f.yaml"));
  EXPECT_EQ(read_experiment(parse_yaml(to_yaml(e.resolved), "again.yaml")).digest, e.digest);
}

TEST(ModelDefaults, FollowFromAFileOfSamplesAndFromTheLoss) {
  const fixtures::TemporaryFolder folder;
  const std::string file = (folder / "data.safetensors").string();
  const auto numbers = at::zeros({4, 2, 3});
  write_safetensors(file, {.tensors = {{"train.x", numbers},
                                       {"train.y", at::tensor({0, 6, 1, 2}, at::kLong)},
                                       {"test.x", numbers},
                                       {"test.y", at::zeros({4}, at::kLong)}},
                           .metadata = {}});
  const std::string dataset = concat("dataset: {name: tensors, file: '", file, "'}\n");
  expect_options(dataset + "model: {name: mlp}", "{widths: [6, 48, 48, 32, 7]}");
  expect_options(dataset + "model: {name: mlp}\nloss: {name: mse}", "{widths: [6, 48, 48, 32, 1]}");
  expect_options("dataset: {name: tensors, file: absent.npz, split: 1}\nmodel: {name: mlp}",
                 "{widths: [64, 48, 48, 32, 10]}");
}

TEST(ModelDefaults, LeaveWrongOptionsToTheReader) {
  for (const char* text :
       {"model: 3", "model: {name: 4}", "model: {name: absent}", "model: {size: 1}",
        "dataset: {name: absent}", "dataset: [1]",
        "dataset: {name: text, tokens: many}\nmodel: {name: gpt}", "loss: {name: absent}"}) {
    const auto refusal = [&] { read_experiment(parse_yaml(text, "f.yaml")); };
    try {
      refusal();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Experiment) << text;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos)
          << "one problem: " << error.what();
    }
  }
}

}  // namespace
}  // namespace pipewright::test
