// SPDX-License-Identifier: Apache-2.0
/// The safetensors file that a training starts from, with our names of tensors or another
/// library's.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/stage.h"
#include "core/tensor_files/foreign_names.h"

namespace pipewright {

struct WeightsFile {
  std::filesystem::path path;         ///< "": none, initialise the weights
  std::optional<ForeignNames> names;  ///< another library's names; none: ours
  std::vector<std::string> fresh;     ///< layers that are initialised even if the file has them
  /// A parameter that the file lacks begins as that one (ParameterSpec::drawn_as).
  std::map<std::string, std::string> begins_as = {};
  bool copies = false;  ///< those are copies of one parameter (model.tie: late), so equal
};

/// Checks that the file has exactly the declared names (in its own naming) and shapes, except those
/// of fresh layers. Makes no tensor. Throws Error{Data} that lists tensors missing, left over or of
/// another shape, and fresh layers that the model does not have.
void check_weights(const WeightsFile& file, const NamedShapes& declared);

/// Fills tensors, given by full name, from a file that has passed check_weights(). Throws
/// Error{Data} if the file has two values of copies of one parameter. Floating types are converted.
/// Fresh layers stay as they are, and so do auxiliary heads if the names are another library's.
void load_weights(const WeightsFile& file,
                  const std::vector<std::pair<std::string, at::Tensor>>& state);

}  // namespace pipewright
