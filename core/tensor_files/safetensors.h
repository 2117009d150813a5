// SPDX-License-Identifier: Apache-2.0
/// The safetensors format: an 8-byte little-endian header length, a JSON header, raw data. Such a
/// file contains no code. The header has at most 100 MB, and its offsets must cover the data
/// without holes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/system/file.h"

namespace pipewright {

struct TensorFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
  const at::Tensor* find(const std::string& name) const;
};

/// Reads the whole file into fresh, 64-byte aligned CPU tensors. Types: F64 F32 F16 BF16 I64 I32
/// I16 I8 U8 BOOL. Throws Error{Data}, naming the file and the fault, if the file is truncated,
/// tensors overlap, a type is unknown, a name occurs twice, or a tensor's size does not match its
/// shape.
TensorFile read_safetensors(const std::filesystem::path& path);

/// Whether the data of a tensor are to be read.
using ReadsTensor = std::function<bool(const std::string& name, at::ScalarType type)>;

/// Reads the data of those tensors only that `reads` accepts. The others are on the meta device,
/// where they have a type and a shape and take no memory.
TensorFile read_safetensors(const std::filesystem::path& path, const ReadsTensor& reads);

struct TensorHeader {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
};

/// Reads the header only; tensors are in the order of their data. It may have at most 100 MB,
/// 100,000 tensors, 10,000 metadata entries and texts of 1 MiB; all limits are checked before
/// memory is taken for an entry. Throws like read_safetensors() for every fault that the header and
/// the file size show.
std::vector<TensorHeader> read_safetensors_header(const std::filesystem::path& path);

/// Writes the file with an atomic rename. Tensors may be on any device and need not be contiguous.
/// They keep the given order, and the header is padded to 8 bytes: equal content gives equal bytes.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Syncs syncs = {});

/// Write to and read from memory. `name` stands for the file in messages.
std::string safetensors_bytes(const TensorFile& file);
TensorFile parse_safetensors(std::string bytes, const std::string& name);

}  // namespace pipewright
