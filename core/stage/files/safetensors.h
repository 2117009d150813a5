/// The safetensors format: an 8-byte little-endian header length, a JSON header, raw data. No code
/// ever runs from such a file. Limits: header ≤ 100 MB; offsets must tile the data without holes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipewright {

struct TensorFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  const at::Tensor* find(const std::string& name) const;
};

/// Reads the whole file; every tensor is a fresh, 64-byte aligned CPU tensor. Types F64 F32 F16
/// BF16 I64 I32 I16 I8 U8 BOOL. Throws Error{Data} (file, what is wrong) on anything else:
/// truncated, overlapping, unknown type, duplicate name, size that does not fit its shape.
TensorFile read_safetensors(const std::filesystem::path& path);

/// Names and shapes, in the order of their data, which is not read. Throws as read_safetensors()
/// for all that header and size of the file can tell.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> read_safetensors_shapes(
    const std::filesystem::path& path);

/// Writes atomically, tensors in the given order (any device, made contiguous), header padded to
/// 8 bytes, keys in the order given: equal content gives equal bytes.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

/// The same in memory. `name` stands for the file in messages.
std::string safetensors_bytes(const TensorFile& file);
TensorFile parse_safetensors(std::string bytes, const std::string& name);

}  // namespace pipewright
