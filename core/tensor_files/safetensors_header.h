// SPDX-License-Identifier: Apache-2.0
/// The header of a safetensors file. It may have at most 100 MB, 100,000 tensors, 10,000 metadata
/// entries and texts of 1 MiB; all limits are checked before memory is taken for an entry.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

struct TensorHeader {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
};

/// Reads the header only; tensors are in the order of their data. Throws like read_safetensors()
/// for every fault that the header and the file size show.
std::vector<TensorHeader> read_safetensors_header(const std::filesystem::path& path);

}  // namespace pipewright
