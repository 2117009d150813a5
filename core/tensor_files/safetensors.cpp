// SPDX-License-Identifier: Apache-2.0
#include "core/tensor_files/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/system/file.h"
#include "core/system/input_file.h"
#include "core/tensor_files/safetensors_layout.h"

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::Data, what, path.string());
}

/// Reads the next `count` bytes of a file or of memory; returns fewer only at the end.
using Source = std::function<std::uint64_t(char* out, std::uint64_t count)>;

void read_exactly(const Source& in, void* out, std::uint64_t bytes,
                  const std::filesystem::path& path) {
  if (in(static_cast<char*>(out), bytes) != bytes) fail(path, "cannot read the whole file");
}

at::Tensor read_tensor(const Source& in, const TensorLayout& layout,
                       const std::filesystem::path& path) {
  at::Tensor tensor;
  try {
    tensor = at::empty(layout.shape, at::TensorOptions(layout.type));
  } catch (const std::exception&) {
    fail(path, concat("tensor '", layout.name, "': there is no memory for its ",
                      counted(layout.bytes, "byte")));
  }
  if (layout.bytes == 0) return tensor;
  auto* data = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  read_exactly(in, data, layout.bytes, path);
  if (layout.type == at::kBool &&
      std::any_of(data, data + layout.bytes, [](auto b) { return b > 1; }))
    fail(path, "tensor '" + layout.name + "': a value of type BOOL is neither 0 nor 1");
  return tensor;
}

/// A file whose header has been read and checked; `in` continues at the first tensor's data.
struct OpenFile {
  Source in;
  FileLayout layout;
};

OpenFile opened(Source in, std::uint64_t size, const std::filesystem::path& path) {
  std::uint64_t length = 0;
  if (size < kLengthBytes)
    fail(path, concat("is no safetensors file: it has only ", counted(size, "byte")));
  read_exactly(in, &length, kLengthBytes, path);
  if (length > kHeaderLimit || length > size - kLengthBytes) {
    if (path.extension() != ".safetensors")
      fail(path,
           "is no safetensors file, and its name does not end in .safetensors; "
           "tools/convert_weights.py makes one of a file of PyTorch");
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    fail(path, concat("is truncated or no safetensors file: it announces a header of ",
                      length > kMost ? "more than " : "", counted(std::min(length, kMost), "byte"),
                      " and has only ", size));
  }
  std::string header(length, '\0');
  read_exactly(in, header.data(), length, path);
  FileLayout layout = layout_of(std::move(header), size - kLengthBytes - length, path);
  return {std::move(in), std::move(layout)};
}

std::shared_ptr<InputFile> existing_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) fail(path, "cannot open: no such file");
  return std::make_shared<InputFile>(path);
}

OpenFile open_file(const std::shared_ptr<InputFile>& file, const std::filesystem::path& path) {
  const std::uint64_t size = file->size();
  return opened([file](char* out, std::uint64_t count) { return file->read(out, count); }, size,
                path);
}

TensorFile read_all(OpenFile from, const std::filesystem::path& path) {
  TensorFile file;
  file.metadata = std::move(from.layout.metadata);
  for (const TensorLayout& layout : from.layout.tensors)
    file.tensors.emplace_back(layout.name, read_tensor(from.in, layout, path));
  return file;
}

std::string type_name(const std::string& name, const at::Tensor& tensor) {
  for (const auto& [text, type] : kTypes)
    if (type == tensor.scalar_type()) return std::string(text);
  PIPEWRIGHT_CHECK(false, "tensor '", name, "' has type ", c10::toString(tensor.scalar_type()));
  return {};
}

std::string header_of(const TensorFile& file) {
  // Keys are appended without a look-up, which would take quadratic time.
  nlohmann::ordered_json::object_t entries;
  if (!file.metadata.empty()) entries.emplace_back(kMetadata, file.metadata);
  std::set<std::string> names{std::string(kMetadata)};
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : file.tensors) {
    PIPEWRIGHT_CHECK(names.insert(name).second, "tensor '", name, "' is written twice");
    const std::uint64_t end = begin + tensor.nbytes();
    nlohmann::ordered_json entry;
    entry["dtype"] = type_name(name, tensor);
    entry["shape"] = tensor.sizes().vec();
    entry["data_offsets"] = {begin, end};
    entries.emplace_back(name, std::move(entry));
    begin = end;
  }
  std::string header;
  try {
    header = nlohmann::ordered_json(std::move(entries)).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::Data, "the name of a tensor, or its metadata, is not UTF-8 text");
  }
  header.resize((header.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  PIPEWRIGHT_CHECK(header.size() <= kHeaderLimit, "a header of ", header.size(), " bytes");
  return header;
}

}  // namespace

const at::Tensor* TensorFile::find(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return read_all(open_file(existing_file(path), path), path);
}

TensorFile read_safetensors(const std::filesystem::path& path, const ReadsTensor& reads) {
  const auto file = existing_file(path);
  const OpenFile from = open_file(file, path);
  TensorFile found{.tensors = {}, .metadata = from.layout.metadata};
  for (const TensorLayout& layout : from.layout.tensors) {
    if (reads(layout.name, layout.type)) {
      found.tensors.emplace_back(layout.name, read_tensor(from.in, layout, path));
      continue;
    }
    file->skip(layout.bytes);
    const auto meta = at::TensorOptions(layout.type).device(at::kMeta);
    found.tensors.emplace_back(layout.name, at::empty(layout.shape, meta));
  }
  return found;
}

TensorFile parse_safetensors(std::string bytes, const std::string& name) {
  const std::uint64_t size = bytes.size();
  std::uint64_t at = 0;
  const auto take = [&](char* out, std::uint64_t count) {
    count = std::min(count, size - at);
    std::memcpy(out, bytes.data() + at, count);
    at += count;
    return count;
  };
  return read_all(opened(take, size, name), name);
}

std::vector<TensorHeader> read_safetensors_header(const std::filesystem::path& path) {
  std::vector<TensorHeader> tensors;
  for (TensorLayout& layout : open_file(existing_file(path), path).layout.tensors)
    tensors.push_back({std::move(layout.name), layout.type, std::move(layout.shape)});
  return tensors;
}

namespace {

/// The bytes of a file, in order; the other members own what `views` point to.
struct Pieces {
  std::string prefix, header;
  std::vector<at::Tensor> kept;
  std::vector<std::string_view> views;
};

void collect(const TensorFile& file, Pieces& pieces) {
  pieces.header = header_of(file);
  const std::uint64_t length = pieces.header.size();
  pieces.prefix.assign(kLengthBytes, '\0');
  std::memcpy(pieces.prefix.data(), &length, kLengthBytes);
  pieces.views = {pieces.prefix, pieces.header};
  for (const auto& [name, tensor] : file.tensors) {
    const at::Tensor& data = pieces.kept.emplace_back(tensor.detach().cpu().contiguous());
    if (data.nbytes() > 0)
      pieces.views.emplace_back(static_cast<const char*>(data.const_data_ptr()), data.nbytes());
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TensorFile& file, Syncs syncs) {
  Pieces pieces;
  collect(file, pieces);
  write_file(path, pieces.views, syncs);
}

std::string safetensors_bytes(const TensorFile& file) {
  Pieces pieces;
  collect(file, pieces);
  std::string bytes;
  for (const std::string_view view : pieces.views) bytes += view;
  return bytes;
}

}  // namespace pipewright
