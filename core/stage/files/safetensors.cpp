// SPDX-License-Identifier: Apache-2.0
#include "core/stage/files/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "core/base/error.h"
#include "core/stage/files/safetensors_header.h"
#include "core/system/file.h"
#include "core/system/input_file.h"

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kHeaderLimit = 100'000'000;
constexpr std::size_t kDimensionLimit = 64;  // LibTorch's limit for most operations
constexpr std::uint64_t kMostTensors = 100'000;
constexpr std::size_t kMostMetadata = 10'000;
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 20;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 10> kTypes{{
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

/// One tensor as the header describes it; `shape` and `offsets` are not checked yet.
struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

/// Upper bounds of what a header makes the parser allocate, from its brackets and quotes alone.
struct HeaderCounts {
  std::uint64_t mappings = 0, longest_text = 0;
};

HeaderCounts counts_of(std::string_view header) {
  HeaderCounts counts;
  for (std::size_t at = header.find_first_of("{\""); at < header.size();
       at = header.find_first_of("{\"", at + 1)) {
    if (header[at] == '{') {
      ++counts.mappings;
      continue;
    }
    const std::size_t begin = at + 1;
    at = header.find_first_of("\"\\", begin);
    while (at < header.size() && header[at] == '\\') at = header.find_first_of("\"\\", at + 2);
    at = std::min(at, header.size());
    counts.longest_text = std::max<std::uint64_t>(counts.longest_text, at - begin);
  }
  return counts;
}

/// Reads the header event by event (SAX), so that only what the format allows is ever built:
/// {"name": {"dtype": text, "shape": [n…], "data_offsets": [n, n]}, "__metadata__": {…}}.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string where) : where_(std::move(where)) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(std::size_t) override {
    if (level_ == Level::Outside) {
      level_ = Level::Top;
    } else if (level_ == Level::Top) {
      level_ = key_ == kMetadata ? Level::Metadata : Level::Tensor;
      if (level_ == Level::Tensor) entries.push_back({.name = key_});
    } else {
      unexpected("a mapping");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (level_ == Level::Top && !names_.insert(name).second) fail("'" + name + "' appears twice");
    if (level_ == Level::Metadata && metadata.contains(name))
      fail("metadata '" + name + "' appears twice");
    key_ = name;
    return true;
  }

  bool end_object() override {
    if (level_ == Level::Tensor) {
      const Entry& entry = entries.back();
      if (!entry.dtype) fail("tensor '" + entry.name + "' has no dtype");
      if (!entry.shape) fail("tensor '" + entry.name + "' has no shape");
      if (!entry.offsets) fail("tensor '" + entry.name + "' has no data_offsets");
    }
    level_ = level_ == Level::Top ? Level::Outside : Level::Top;
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == Level::Metadata) {
      if (metadata.size() == kMostMetadata)
        fail(concat("has more than ", kMostMetadata, " entries of metadata"));
      metadata.emplace(key_, text);
    } else if (level_ == Level::Tensor && key_ == "dtype" && list_ == nullptr) {
      once(entries.back().dtype).emplace(text);
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::Tensor || list_ != nullptr) unexpected("a list");
    if (key_ == "shape") {
      list_ = &once(entries.back().shape).emplace();
    } else if (key_ == "data_offsets") {
      list_ = &once(entries.back().offsets).emplace();
    } else {
      unexpected("a list");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t number) override {
    if (list_ == nullptr) unexpected("a number");
    if (list_->size() == kDimensionLimit)
      fail(concat("tensor '", entries.back().name, "': ", key_, " has more than ", kDimensionLimit,
                  " numbers"));
    list_->push_back(number);
    return true;
  }

  bool end_array() override {
    list_ = nullptr;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(std::int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("such a number"); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    fail(concat("is not JSON at byte ", position));
  }

 private:
  enum class Level : std::uint8_t { Outside, Top, Metadata, Tensor };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Data, "safetensors header: " + what, where_);
  }
  [[noreturn]] bool unexpected(std::string_view what) const {
    fail(concat(what, " where none may be, after '", key_, "'"));
  }
  template <class Value>
  std::optional<Value>& once(std::optional<Value>& value) const {
    if (value) fail("tensor '" + entries.back().name + "' has two " + key_);
    return value;
  }

  std::string where_;
  Level level_ = Level::Outside;
  std::string key_;
  std::set<std::string> names_;
  std::vector<std::uint64_t>* list_ = nullptr;
};

/// A checked entry. Its data take `bytes` bytes, directly behind those of the entry before.
struct Layout {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::Data, what, path.string());
}

Layout checked(const Entry& entry, const std::filesystem::path& path) {
  const std::string tensor = "tensor '" + entry.name + "'";
  const auto type = std::ranges::find(kTypes, *entry.dtype, [](const auto& t) { return t.first; });
  if (type == kTypes.end()) {
    std::vector<std::string> known;
    for (const auto& [name, unused] : kTypes) known.emplace_back(name);
    fail(path, concat(tensor, ": type '", *entry.dtype, "' is not one of ", join(known, ", ")));
  }
  Layout layout{entry.name, type->second, {}, c10::elementSize(type->second)};
  // Sizes of 0 count as 1 here, because strides are products of sizes and must not overflow either.
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  bool empty = false;
  for (const std::uint64_t size : *entry.shape) {
    if (size > most || layout.bytes > most / std::max<std::uint64_t>(size, 1))
      fail(path, tensor + ": its shape has more elements than can be counted");
    layout.bytes *= std::max<std::uint64_t>(size, 1);
    layout.shape.push_back(static_cast<std::int64_t>(size));
    empty = empty || size == 0;
  }
  if (empty) layout.bytes = 0;
  const auto& offsets = *entry.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail(path, tensor + ": data_offsets must be [begin, end] with begin <= end");
  if (offsets[1] - offsets[0] != layout.bytes)
    fail(path, concat(tensor, ": has ", offsets[1] - offsets[0],
                      " bytes of data, its shape and type need ", layout.bytes));
  return layout;
}

/// Checks the entries and sorts them by offset; they must cover the data without hole or overlap.
std::vector<Layout> tiled(std::vector<Entry> entries, std::uint64_t data_bytes,
                          const std::filesystem::path& path) {
  std::vector<std::pair<std::vector<std::uint64_t>, Layout>> placed;
  for (const Entry& entry : entries) placed.emplace_back(*entry.offsets, checked(entry, path));
  std::vector<Entry>().swap(entries);
  std::ranges::stable_sort(placed, {}, [](const auto& p) { return p.first; });
  std::vector<Layout> layouts;
  std::uint64_t end = 0;
  for (auto& [offsets, layout] : placed) {
    if (offsets[0] != end)
      fail(path, concat("tensor '", layout.name, "': its data begin at ", offsets[0],
                        ", those before it end at ", end));
    end = offsets[1];
    layouts.push_back(std::move(layout));
  }
  if (end != data_bytes)
    fail(path, concat("the header describes ", end, " bytes of data, the file has ", data_bytes));
  return layouts;
}

/// Reads the next `count` bytes of a file or of memory; returns fewer only at the end.
using Source = std::function<std::uint64_t(char* out, std::uint64_t count)>;

void read_exactly(const Source& in, void* out, std::uint64_t bytes,
                  const std::filesystem::path& path) {
  if (in(static_cast<char*>(out), bytes) != bytes) fail(path, "cannot read the whole file");
}

at::Tensor read_tensor(const Source& in, const Layout& layout, const std::filesystem::path& path) {
  at::Tensor tensor;
  try {
    tensor = at::empty(layout.shape, at::TensorOptions(layout.type));
  } catch (const std::exception&) {
    fail(path, concat("tensor '", layout.name, "': no memory for its ", layout.bytes, " bytes"));
  }
  if (layout.bytes == 0) return tensor;
  auto* data = static_cast<unsigned char*>(tensor.mutable_data_ptr());
  read_exactly(in, data, layout.bytes, path);
  if (layout.type == at::kBool &&
      std::any_of(data, data + layout.bytes, [](auto b) { return b > 1; }))
    fail(path, "tensor '" + layout.name + "': a BOOL is neither 0 nor 1");
  return tensor;
}

/// A file whose header has been read and checked; `in` continues at the first tensor's data.
struct OpenFile {
  Source in;
  std::vector<Layout> layouts;
  std::map<std::string, std::string> metadata;
};

std::string read_header(const Source& in, std::uint64_t length, const std::filesystem::path& path) {
  std::string header(length, '\0');
  read_exactly(in, header.data(), length, path);
  // The parser skips a byte-order mark and takes a zero byte for the end of the text.
  if (!header.starts_with('{') || header.find('\0') != std::string::npos)
    fail(path, "safetensors header: is not JSON");
  const HeaderCounts counts = counts_of(header);
  if (counts.mappings > kMostTensors + 2)  // + 2: the header itself and the metadata
    fail(path, concat("safetensors header: describes ", counts.mappings - 1, " tensors; at most ",
                      kMostTensors, " are read"));
  if (counts.longest_text > kLongestText)
    fail(path, concat("safetensors header: has a text of ", counts.longest_text, " bytes; at most ",
                      kLongestText, " are read"));
  return header;
}

OpenFile opened(Source in, std::uint64_t size, const std::filesystem::path& path) {
  std::uint64_t length = 0;
  if (size < kLengthBytes) fail(path, concat("is no safetensors file: it has ", size, " bytes"));
  read_exactly(in, &length, kLengthBytes, path);
  if (length > kHeaderLimit || length > size - kLengthBytes)
    fail(path, concat("is truncated or no safetensors file: a header of ", length,
                      " bytes in a file of ", size));
  HeaderReader reader(path.string());
  nlohmann::json::sax_parse(read_header(in, length, path), &reader);
  return {std::move(in), tiled(std::move(reader.entries), size - kLengthBytes - length, path),
          std::move(reader.metadata)};
}

OpenFile open_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) fail(path, "cannot open: no such file");
  auto file = std::make_shared<InputFile>(path);
  const std::uint64_t size = file->size();
  return opened([file](char* out, std::uint64_t count) { return file->read(out, count); }, size,
                path);
}

TensorFile read_all(OpenFile from, const std::filesystem::path& path) {
  TensorFile file;
  file.metadata = std::move(from.metadata);
  for (const Layout& layout : from.layouts)
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
    throw Error(ErrorKind::Data, "a tensor's name or metadata is not UTF-8 text");
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
  return read_all(open_file(path), path);
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
  for (Layout& layout : open_file(path).layouts)
    tensors.push_back({std::move(layout.name), layout.type, std::move(layout.shape)});
  return tensors;
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> read_safetensors_shapes(
    const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
  for (TensorHeader& tensor : read_safetensors_header(path))
    shapes.emplace_back(std::move(tensor.name), std::move(tensor.shape));
  return shapes;
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

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  Pieces pieces;
  collect(file, pieces);
  write_file(path, pieces.views);
}

std::string safetensors_bytes(const TensorFile& file) {
  Pieces pieces;
  collect(file, pieces);
  std::string bytes;
  for (const std::string_view view : pieces.views) bytes += view;
  return bytes;
}

}  // namespace pipewright
