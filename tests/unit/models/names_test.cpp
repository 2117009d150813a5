// SPDX-License-Identifier: Apache-2.0
// The names of models in other libraries' files, as those libraries print them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/nn/model.h"
#include "core/stage/stage.h"
#include "core/tensor_files/foreign_names.h"

namespace pipewright::test {
namespace {

using Names = std::vector<std::string>;

/// A model, and what its tensors are usually called there, in our order.
Names their_names(const std::string& name, const std::string& options, const std::string& format) {
  const Value given = parse_yaml(options, "test.yaml");
  Problems problems;
  Options read(&given, "model", problems);
  const auto model = Registry<Model>::instance().find(name)->make(read);
  read.finish();
  problems.throw_if_any();
  const auto* make = ForeignNamesRegistry::instance().find(name, format);
  if (make == nullptr) return {"no names"};
  const NameTranslation translated((*make)(read.resolved()));
  Names names;
  for (const auto& [ours, shape] : state_shapes(model->layers()))
    names.push_back(translated.theirs(ours).names.at(0));
  return names;
}

void expect_names(const std::string& model, const std::string& options, const std::string& format,
                  const Names& some) {
  const Names names = their_names(model, options, format);
  for (const std::string& name : some) EXPECT_EQ(std::ranges::count(names, name), 1) << name;
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << model;
}

TEST(TorchvisionNames, OfResNets) {
  const Names some{"conv1.weight",
                   "bn1.weight",
                   "bn1.running_var",
                   "layer1.0.conv1.weight",
                   "layer1.1.bn2.running_mean",
                   "layer2.0.downsample.0.weight",
                   "layer2.0.downsample.1.bias",
                   "layer4.1.conv2.weight",
                   "fc.weight",
                   "fc.bias"};
  expect_names("resnet18", "{stem: imagenet, size: 64}", "torchvision", some);
}

TEST(TorchvisionNames, OfVgg16CountBatchNormsWhereThereAreSome) {
  expect_names("vgg16", "{head: classifier, batch_norm: false}", "torchvision",
               {"features.0.weight", "features.2.bias", "features.5.weight", "features.28.weight",
                "classifier.0.weight", "classifier.3.weight", "classifier.6.bias"});
  expect_names("vgg16", "{head: classifier}", "torchvision",
               {"features.0.weight", "features.1.running_mean", "features.7.weight",
                "features.40.weight", "features.41.bias", "classifier.6.weight"});
}

TEST(TorchvisionNames, OfVgg16AreNotThoseOfItsFormWithOneLinearLayer) {
  EXPECT_THROW(their_names("vgg16", "{}", "torchvision"), Error);
}

}  // namespace
}  // namespace pipewright::test
