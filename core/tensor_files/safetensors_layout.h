// SPDX-License-Identifier: Apache-2.0
/// Which tensors a safetensors file has and where their data lie, as the text of its header says.
/// Private to this room.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

inline constexpr std::uint64_t kHeaderLimit = 100'000'000;  // bytes
inline constexpr std::string_view kMetadata = "__metadata__";

/// Names of the types in a header.
inline constexpr std::array<std::pair<std::string_view, at::ScalarType>, 10> kTypes{{
    {"F64", at::kDouble},
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
}};

struct TensorLayout {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;  ///< they begin where those of the tensor before end
};

struct FileLayout {
  std::vector<TensorLayout> tensors;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Reads a header. Its limits (safetensors.h) are checked before memory is taken for an
/// entry; the tensors cover `data_bytes` bytes without hole or overlap. Throws Error{Data} with
/// `path` as its place.
FileLayout layout_of(std::string header, std::uint64_t data_bytes,
                     const std::filesystem::path& path);

}  // namespace pipewright
