// SPDX-License-Identifier: Apache-2.0
/// torchvision's names for ResNets: we number blocks through the model, torchvision within each
/// group.
#include <array>

#include "core/base/text.h"
#include "core/tensor_files/foreign_names.h"

namespace pipewright {
namespace {

ForeignNamesRegistry::Make resnet(std::array<int, 4> blocks) {
  return [blocks](const Value&) {
    ForeignNames rules{.names = {{"^stem\\.bn\\.", "bn1."},
                                 {"^stem\\.", "conv1."},
                                 {"\\.shortcut\\.conv\\.", ".downsample.0."},
                                 {"\\.shortcut\\.bn\\.", ".downsample.1."},
                                 {"^classifier\\.", "fc."}},
                       .ignored = {".*\\.num_batches_tracked"}};
    int block = 0, group = 0;
    for (const int count : blocks) {
      ++group;
      for (int i = 0; i < count; ++i)
        rules.names.push_back(
            {concat("^block", ++block, "\\."), concat("layer", group, ".", i, ".")});
    }
    return rules;
  };
}

PIPEWRIGHT_FOREIGN_NAMES(resnet18, torchvision, resnet({2, 2, 2, 2}));
PIPEWRIGHT_FOREIGN_NAMES(resnet34, torchvision, resnet({3, 4, 6, 3}));
PIPEWRIGHT_FOREIGN_NAMES(resnet50, torchvision, resnet({3, 4, 6, 3}));
PIPEWRIGHT_FOREIGN_NAMES(resnet101, torchvision, resnet({3, 4, 23, 3}));

}  // namespace
}  // namespace pipewright
