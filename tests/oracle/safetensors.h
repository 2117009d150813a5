// SPDX-License-Identifier: Apache-2.0
/// The part of the safetensors format that the oracle exchanges with the program: eight bytes with
/// the length of a JSON header (little endian), the header {name: {dtype, shape, data_offsets}},
/// the data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace oracle {

/// A named tensor: F64 values, or I64 where `integers` is true (then every value is a whole
/// number).
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major
  bool integers = false;
};

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

/// Reads a file. Throws std::runtime_error that names the file if it is missing, damaged, or has
/// another dtype.
std::map<std::string, NamedTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace oracle
