/// What the header of a safetensors file says of its tensors. Headers have at most 100 MB, 100,000
/// tensors, 10,000 entries of metadata and texts of 1 MiB, all counted before anything is kept.
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

/// In the order of their data, which is not read. Throws as read_safetensors() for all that header
/// and size of the file can tell.
std::vector<TensorHeader> read_safetensors_header(const std::filesystem::path& path);

}  // namespace pipewright
