// SPDX-License-Identifier: Apache-2.0
/// torchvision's names for vgg16 and vgg16_bn, which number convolutions, batch norms, ReLUs and
/// pools in one sequence.
#include "core/base/error.h"
#include "core/tensor_files/foreign_names.h"

namespace pipewright {
namespace {

constexpr int kConvolutions[] = {2, 2, 3, 3, 3};  ///< number between pools

ForeignNames vgg16(const Value& options) {
  if (options.find("head")->text != "classifier")
    throw Error(ErrorKind::Experiment,
                "model.head is pool_linear; torchvision's vgg16 needs head: classifier, its "
                "original three linear layers");
  const bool batch_norm = options.find("batch_norm")->flag;
  ForeignNames rules{.names = {{"^fc1\\.", "classifier.0."},
                               {"^fc2\\.", "classifier.3."},
                               {"^fc3\\.", "classifier.6."}},
                     .ignored = {".*\\.num_batches_tracked"}};
  int index = 0, group = 0;
  for (const int count : kConvolutions) {
    ++group;
    for (int i = 1; i <= count; ++i) {
      const std::string name = concat("^conv", group, "_", i, "\\.");
      if (batch_norm) rules.names.push_back({name + "bn\\.", concat("features.", index + 1, ".")});
      rules.names.push_back({name, concat("features.", index, ".")});
      index += batch_norm ? 3 : 2;
    }
    ++index;
  }
  return rules;
}

PIPEWRIGHT_FOREIGN_NAMES(vgg16, torchvision, vgg16);

}  // namespace
}  // namespace pipewright
