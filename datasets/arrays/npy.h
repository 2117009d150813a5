// SPDX-License-Identifier: Apache-2.0
/// NumPy's files of arrays. A .npy file is one array: a magic number, the length of a header, the
/// header (a Python dictionary as text: descr, fortran_order, shape) and raw data. A .npz file is a
/// zip archive of .npy files. Nothing in them is ever executed: arrays of Python objects, which are
/// pickled, are refused.
///
/// Versions 1 to 3; little-endian floats of 2, 4 and 8 bytes, signed integers of 1 to 8, unsigned
/// ones of 1, and truth values. The header is compared with the size of the file before memory is
/// taken for data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

/// What a header says, and where its data lie in the file.
struct NpyHeader {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
  bool fortran_order = false;  ///< the first index runs fastest
  std::uint64_t begin = 0;     ///< of the data, in bytes
  std::uint64_t bytes = 0;     ///< of the data
};

/// A file's first bytes that suffice for every header that is read.
inline constexpr std::uint64_t kNpyHeaderBytes = 12 + (1 << 16);

/// Reads the header of a file of `size` bytes from its first ones: all, or kNpyHeaderBytes. Throws
/// Error{Data} at `where` for what is no such file, for types that are not read, and for data that
/// do not end with the file.
NpyHeader npy_header(std::string_view start, std::uint64_t size, const std::string& where);

/// The array of a .npy file, contiguous. Throws Error{Data}.
at::Tensor read_npy(const std::filesystem::path& path);

/// As above, but an array of a type that `reads` does not accept is on the meta device, where it
/// has a shape and takes no memory.
at::Tensor read_npy(const std::filesystem::path& path,
                    const std::function<bool(at::ScalarType)>& reads);

/// The arrays of a .npz file by their names there, without ".npy". Throws Error{Data}, also for a
/// member that is no array, for one that is encrypted or packed otherwise than by deflate, and,
/// before memory is taken, for arrays that are larger than such a file can hold or than memory.
std::vector<std::pair<std::string, at::Tensor>> read_npz(const std::filesystem::path& path);

}  // namespace pipewright
