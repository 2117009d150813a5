/// The safetensors file a training starts from: our own names, or those of another library.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/stage/files/foreign_names.h"
#include "core/stage/stage.h"

namespace pipewright {

struct WeightsFile {
  std::filesystem::path path;         ///< "" = none: initialise
  std::optional<ForeignNames> names;  ///< of another library; none: ours
  std::vector<std::string> fresh;     ///< layers that start as initialised, whatever the file has
};

/// Whether the file holds exactly the names and shapes declared, in its own terms and but for fresh
/// layers; no tensor is made. Throws Error{Data} listing what is missing, left over or of another
/// shape, and naming a fresh layer that the model does not have.
void check_weights(const WeightsFile& file, const NamedShapes& declared);

/// Fills tensors, by full name, from a file that check_weights() has found right; its floating
/// types are converted. Fresh layers stay as they are, and
/// auxiliary heads where the names are another library's.
void load_weights(const WeightsFile& file,
                  const std::vector<std::pair<std::string, at::Tensor>>& state);

/// "64×3×7×7"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace pipewright
