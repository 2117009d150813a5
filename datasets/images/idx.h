// SPDX-License-Identifier: Apache-2.0
/// The idx format of MNIST and its successors: a big-endian header (0, 0, element type, number of
/// dimensions, then each dimension in 4 bytes) and the elements in row-major order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace pipewright {

/// The size, in bytes, of a file of unsigned bytes with these dimensions.
std::uint64_t idx_size(std::span<const std::int64_t> dimensions);

/// Returns the elements of `content`. Throws Error{Data} at `path` unless it is an idx file of
/// unsigned bytes with exactly these dimensions and the right size.
std::string_view idx_elements(std::string_view content, std::span<const std::int64_t> dimensions,
                              const std::filesystem::path& path);

}  // namespace pipewright
