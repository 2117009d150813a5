// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/npy.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "core/system/input_file.h"
#include "core/system/machine_limits.h"
#include "core/tensors/torch.h"
#include "datasets/archives/archive.h"

namespace pipewright {
namespace {

constexpr std::string_view kSuffix = ".npy";

/// Most bytes that a byte of deflated data unpacks to.
constexpr std::uint64_t kMostUnpacked = 1032;

/// Copies the array's bytes to a place with room for them.
using Copy = std::function<void(char* out)>;

at::Tensor array_of(const NpyHeader& header, const Copy& copy, const std::string& where) {
  std::vector<std::int64_t> shape = header.shape;
  if (header.fortran_order) std::ranges::reverse(shape);
  at::Tensor array;
  try {
    array = at::empty(shape, at::TensorOptions(header.type));
  } catch (const std::exception&) {
    throw data_error(where, "there is no memory for its ", counted(header.bytes, "byte"));
  }
  auto* const data = static_cast<char*>(array.mutable_data_ptr());
  copy(data);
  if (header.type == at::kBool &&
      std::any_of(data, data + header.bytes, [](char value) { return value != 0 && value != 1; }))
    throw data_error(where, "has a truth value that is neither 0 nor 1");
  if (!header.fortran_order || shape.size() < 2) return array;
  std::vector<std::int64_t> backwards;
  for (std::size_t i = shape.size(); i-- > 0;) backwards.push_back(static_cast<std::int64_t>(i));
  return array.permute(backwards).contiguous();
}

/// Throws for a member that no deflated file of this size holds, or that, with those before, does
/// not fit into memory; it is there twice for a while, as bytes and as an array.
void check_size(const ArchiveReader& archive, std::uint64_t before, std::uint64_t file_size,
                const std::string& where) {
  if (archive.size() / kMostUnpacked > file_size)
    throw data_error(where, "member '", archive.name(), "' announces more bytes than a file of ",
                     counted(file_size, "byte"), " can hold");
  const double bytes = static_cast<double>(before) + 2 * static_cast<double>(archive.size());
  if (const MemoryLimit limit = memory_limit(); bytes > limit.bytes)
    throw data_error(where, "its arrays take ", bytes_text(bytes), "; ", limit.text);
}

}  // namespace

at::Tensor read_npy(const std::filesystem::path& path) {
  return read_npy(path, [](at::ScalarType) { return true; });
}

at::Tensor read_npy(const std::filesystem::path& path,
                    const std::function<bool(at::ScalarType)>& reads) {
  InputFile file(path);
  std::string start(std::min(file.size(), kNpyHeaderBytes), '\0');
  start.resize(file.read_at(0, start.data(), start.size()));
  const std::string where = path.string();
  const NpyHeader header = npy_header(start, file.size(), where);
  if (!reads(header.type))
    return at::empty(header.shape, at::TensorOptions(header.type).device(at::kMeta));
  return array_of(
      header,
      [&](char* out) {
        if (file.read_at(header.begin, out, header.bytes) != header.bytes)
          throw data_error(where, "cannot read the whole file");
      },
      where);
}

std::vector<std::pair<std::string, at::Tensor>> read_npz(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::uint64_t file_size = InputFile(path).size();
  ArchiveReader archive(path);
  std::vector<std::pair<std::string, at::Tensor>> arrays;
  std::set<std::string> names;
  std::uint64_t before = 0;
  while (archive.next()) {
    if (!archive.name().ends_with(kSuffix))
      throw data_error(where, "member '", archive.name(),
                       "' is no array; expected names that end in ", kSuffix);
    const std::string name = archive.name().substr(0, archive.name().size() - kSuffix.size());
    if (!names.insert(name).second) throw data_error(where, "array '", name, "' is there twice");
    check_size(archive, before, file_size, where);
    before += archive.size();
    const std::string bytes = archive.content(archive.size()),
                      of = concat(where, ": array '", name, "'");
    const NpyHeader header =
        npy_header(std::string_view(bytes).substr(0, kNpyHeaderBytes), bytes.size(), of);
    arrays.emplace_back(
        name,
        array_of(
            header, [&](char* out) { std::memcpy(out, bytes.data() + header.begin, header.bytes); },
            of));
  }
  return arrays;
}

}  // namespace pipewright
