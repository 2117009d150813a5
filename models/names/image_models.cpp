// SPDX-License-Identifier: Apache-2.0
/// torchvision's names for models whose layer names are nearly the same as ours.
#include "core/base/error.h"
#include "core/tensor_files/foreign_names.h"

namespace pipewright {
namespace {

const std::string kBatchesTracked = ".*\\.num_batches_tracked";

/// Throws Error{Experiment} unless `option` has `value`: the library has the model in that form
/// only.
void require(const Value& options, const std::string& option, const std::string& value) {
  const std::string given = options.find(option)->text;
  if (given != value)
    throw Error(ErrorKind::Experiment,
                concat("model.", option, " is ", given, "; torchvision's ",
                       options.find("name")->text, " needs ", option, ": ", value));
}

ForeignNames alexnet(const Value&) {
  return {.names = {{"^conv1\\.", "features.0."},
                    {"^conv2\\.", "features.3."},
                    {"^conv3\\.", "features.6."},
                    {"^conv4\\.", "features.8."},
                    {"^conv5\\.", "features.10."},
                    {"^fc6\\.", "classifier.1."},
                    {"^fc7\\.", "classifier.4."},
                    {"^fc8\\.", "classifier.6."}}};
}

/// The published file has "denselayer1.norm.1" instead of "denselayer1.norm1".
ForeignNames densenet121(const Value& options) {
  require(options, "stem", "imagenet");
  require(options, "concatenate", "old_first");
  return {.names = {{"^(denseblock|transition)", "features.$1"},
                    {"^stem\\.", "features."},
                    {"^classifier\\.norm5\\.", "features.norm5."}},
          .instead = {{"(denselayer\\d+\\.norm|denselayer\\d+\\.conv)(\\d)", "$1.$2"}},
          .ignored = {kBatchesTracked}};
}

/// The files hold auxiliary classifiers, which our model does not have.
ForeignNames googlenet(const Value& options) {
  require(options, "form", "torchvision");
  return {.ignored = {kBatchesTracked, "aux[12]\\..*"}};
}

ForeignNames inception_v3(const Value&) {
  return {.ignored = {kBatchesTracked, "AuxLogits\\..*"}};
}

ForeignNames mobilenet_v2(const Value&) {
  return {.ignored = {kBatchesTracked}};
}

PIPEWRIGHT_FOREIGN_NAMES(alexnet, torchvision, alexnet);
PIPEWRIGHT_FOREIGN_NAMES(densenet121, torchvision, densenet121);
PIPEWRIGHT_FOREIGN_NAMES(googlenet, torchvision, googlenet);
PIPEWRIGHT_FOREIGN_NAMES(inception_v3, torchvision, inception_v3);
PIPEWRIGHT_FOREIGN_NAMES(mobilenet_v2, torchvision, mobilenet_v2);

}  // namespace
}  // namespace pipewright
