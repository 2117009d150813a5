/// The idx format of MNIST and its successors: a big-endian header (0, 0, element type, number of
/// dimensions, then each dimension in 4 bytes) and the elements, the last dimension running
/// fastest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace pipewright {

/// The size of the file of bytes with these dimensions.
std::uint64_t idx_size(std::span<const std::int64_t> dimensions);

/// The elements of `content`, which must be an idx file of unsigned bytes with exactly these
/// dimensions. Throws Error{Data} at `path` otherwise: wrong magic number, wrong count, wrong size.
std::string_view idx_elements(std::string_view content, std::span<const std::int64_t> dimensions,
                              const std::filesystem::path& path);

}  // namespace pipewright
