/// The safetensors format, as much of it as the oracle exchanges with the program: eight bytes with
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

/// Throws std::runtime_error, naming the file, where it is not there, damaged, or holds another
/// dtype.
std::map<std::string, NamedTensor> read_safetensors(const std::filesystem::path& path);

}  // namespace oracle
