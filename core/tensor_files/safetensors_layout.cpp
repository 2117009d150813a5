// SPDX-License-Identifier: Apache-2.0
#include "core/tensor_files/safetensors_layout.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"

namespace pipewright {
namespace {

constexpr std::size_t kDimensionLimit = 64;  // LibTorch's limit for most operations
constexpr std::uint64_t kMostTensors = 100'000;
constexpr std::size_t kMostMetadata = 10'000;
constexpr std::uint64_t kLongestText = std::uint64_t{1} << 20;

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
  bool number_float(double, const std::string&) override {
    return unexpected("a number that is not whole or too large");
  }
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
    fail(concat(what, " stands where none is expected, after '", key_, "'"));
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

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::Data, what, path.string());
}

TensorLayout checked(const Entry& entry, const std::filesystem::path& path) {
  const std::string tensor = "tensor '" + entry.name + "'";
  const auto type = std::ranges::find(kTypes, *entry.dtype, [](const auto& t) { return t.first; });
  if (type == kTypes.end()) {
    std::vector<std::string> known;
    for (const auto& [name, unused] : kTypes) known.emplace_back(name);
    refuse(path, concat(tensor, ": type '", *entry.dtype, "' is not supported; expected one of ",
                        join(known, ", ")));
  }
  TensorLayout layout{entry.name, type->second, {}, c10::elementSize(type->second)};
  // Sizes of 0 count as 1 here, because strides are products of sizes and must not overflow either.
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  bool empty = false;
  for (const std::uint64_t size : *entry.shape) {
    if (size > most || layout.bytes > most / std::max<std::uint64_t>(size, 1))
      refuse(path, tensor + ": its shape has more elements than can be counted");
    layout.bytes *= std::max<std::uint64_t>(size, 1);
    layout.shape.push_back(static_cast<std::int64_t>(size));
    empty = empty || size == 0;
  }
  if (empty) layout.bytes = 0;
  const auto& offsets = *entry.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse(path, tensor + ": data_offsets must be [begin, end] with begin <= end");
  if (offsets[1] - offsets[0] != layout.bytes)
    refuse(path, concat(tensor, " has ", counted(offsets[1] - offsets[0], "byte"),
                        " of data; its shape and type need ", layout.bytes));
  return layout;
}

/// Checks the entries and sorts them by offset; they must cover the data without hole or overlap.
std::vector<TensorLayout> tiled(std::vector<Entry> entries, std::uint64_t data_bytes,
                                const std::filesystem::path& path) {
  std::vector<std::pair<std::vector<std::uint64_t>, TensorLayout>> placed;
  for (const Entry& entry : entries) placed.emplace_back(*entry.offsets, checked(entry, path));
  std::vector<Entry>().swap(entries);
  std::ranges::stable_sort(placed, {}, [](const auto& p) { return p.first; });
  std::vector<TensorLayout> layouts;
  std::uint64_t end = 0;
  for (auto& [offsets, layout] : placed) {
    if (offsets[0] != end)
      refuse(path,
             concat("tensor '", layout.name, "': its data begin at byte ", offsets[0],
                    ", but those before it end at ", end, "; expected no gap and no overlap"));
    end = offsets[1];
    layouts.push_back(std::move(layout));
  }
  if (end != data_bytes)
    refuse(path, concat("the header describes ", counted(end, "byte"),
                        " of data, but the file has ", data_bytes));
  return layouts;
}

}  // namespace

FileLayout layout_of(std::string header, std::uint64_t data_bytes,
                     const std::filesystem::path& path) {
  // The parser skips a byte-order mark and takes a zero byte for the end of the text.
  if (!header.starts_with('{') || header.find('\0') != std::string::npos)
    refuse(path, "the safetensors header is not JSON");
  const HeaderCounts counts = counts_of(header);
  if (counts.mappings > kMostTensors + 2)  // + 2: the header itself and the metadata
    refuse(path, concat("the safetensors header describes ", counted(counts.mappings - 1, "tensor"),
                        "; at most ", grouped_text(kMostTensors), " are read"));
  if (counts.longest_text > kLongestText)
    refuse(path,
           concat("the safetensors header has a text of ", counted(counts.longest_text, "byte"),
                  "; at most ", grouped_text(kLongestText), " are read"));
  HeaderReader reader(path.string());
  nlohmann::json::sax_parse(header, &reader);
  std::string().swap(header);  // its memory is free for the layout
  return {tiled(std::move(reader.entries), data_bytes, path), std::move(reader.metadata)};
}

}  // namespace pipewright
