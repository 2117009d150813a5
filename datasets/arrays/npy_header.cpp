// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <optional>

#include "core/base/error_at.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "datasets/arrays/npy.h"

namespace pipewright {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 64;  // of NumPy, and of most operations of LibTorch
constexpr std::size_t kShownOfHeader = 40;   // bytes of a wrong header

struct NamedType {
  std::string_view descr;
  at::ScalarType type;
};
constexpr std::array kTypes{
    NamedType{"<f2", at::kHalf}, NamedType{"<f4", at::kFloat}, NamedType{"<f8", at::kDouble},
    NamedType{"|i1", at::kChar}, NamedType{"<i2", at::kShort}, NamedType{"<i4", at::kInt},
    NamedType{"<i8", at::kLong}, NamedType{"|u1", at::kByte},  NamedType{"|b1", at::kBool}};

/// Reads the dictionary, in any order of its keys, each once: {'descr': '<f8', 'fortran_order':
/// False, 'shape': (2, 3), }
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  void read() {
    expect("{");
    while (!take("}")) {
      read_entry();
      if (take("}")) break;
      expect(",");
    }
    skip_space();
    if (!rest_.empty()) unexpected("the end of the header");
    if (!descr) missing("descr");
    if (!fortran_order) missing("fortran_order");
    if (!shape) missing("shape");
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw data_error(where_, what); }
  [[noreturn]] void missing(const char* key) const {
    fail(concat("the header of the array has no '", key, "'"));
  }
  [[noreturn]] void unexpected(const std::string& expected) const {
    fail(concat("the header of the array has '", printable(rest_.substr(0, kShownOfHeader)),
                "' where ", expected, " is expected"));
  }
  template <class T>
  void once(const std::optional<T>& value, const std::string& key) const {
    if (value) fail(concat("the header of the array has '", key, "' twice"));
  }

  void skip_space() {
    const std::size_t at = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }
  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) unexpected(concat("'", token, "'"));
  }

  std::string text() {
    skip_space();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') unexpected("a text in quotes");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) unexpected("a text with its closing quote");
    const std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  void read_entry() {
    const std::string key = text();
    expect(":");
    if (key == "descr") {
      once(descr, key);
      skip_space();
      if (rest_.starts_with("[") || rest_.starts_with("("))
        fail("the array has records with several fields; save each field as an array of its own");
      descr = text();
    } else if (key == "fortran_order") {
      once(fortran_order, key);
      fortran_order = take("True");
      if (!*fortran_order) expect("False");
    } else if (key == "shape") {
      once(shape, key);
      read_shape();
    } else {
      fail(concat("the header of the array has the key '", printable(key),
                  "'; expected descr, fortran_order and shape only"));
    }
  }

  void read_shape() {
    shape.emplace();
    expect("(");
    while (!take(")")) {
      if (shape->size() == kMostDimensions)
        fail(concat("the array has more than ", kMostDimensions, " dimensions"));
      skip_space();
      std::int64_t extent = 0;
      const char* const end = rest_.data() + rest_.size();
      const auto [stop, fault] = std::from_chars(rest_.data(), end, extent);
      if (fault != std::errc() || extent < 0) unexpected("a size");
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      shape->push_back(extent);
      if (take(",")) continue;
      if (shape->size() == 1) unexpected("',' behind the only size");  // (3) is no tuple
      expect(")");
      return;
    }
  }

  std::string_view rest_;
  std::string where_;
};

/// A message about a type that is not read: the fault, and what to do.
std::string refusal_of(const std::string& descr) {
  const std::string shown = concat("the array has the type '", printable(descr), "'");
  const char kind = descr.size() > 1 ? descr[1] : ' ';
  if (kind == 'O')
    return shown +
           ", Python objects, which are pickled and never loaded; save numbers, as of "
           "numpy.float64";
  if (descr.starts_with(">"))
    return shown + ", which is big-endian; save it little-endian, as array.astype('<f8') is";
  return shown +
         "; expected floats of 16, 32 or 64 bits, signed integers, uint8 or bool; "
         "array.astype(numpy.float64) makes floats of numbers";
}

at::ScalarType type_of(const std::string& descr, const std::string& where) {
  for (const NamedType& known : kTypes) {
    const bool one_byte = known.descr.front() == '|';
    if (descr == known.descr || (one_byte && descr == concat('<', known.descr.substr(1))))
      return known.type;
  }
  throw data_error(where, refusal_of(descr));
}

/// The number of bytes of such an array, if that is at most `most`.
std::optional<std::uint64_t> bytes_of(const NpyHeader& header, std::uint64_t most) {
  std::uint64_t bytes = c10::elementSize(header.type);
  for (const std::int64_t extent : header.shape) {
    if (static_cast<std::uint64_t>(extent) > most / bytes) return {};
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = 256 * value + static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

NpyHeader npy_header(std::string_view start, std::uint64_t size, const std::string& where) {
  const auto fail = [&](const std::string& what) { throw data_error(where, what); };
  if (!start.starts_with(kMagic)) fail("is no .npy file: it does not begin with \\x93NUMPY");
  if (start.size() < kMagic.size() + 2) fail("is truncated: its header is incomplete");
  const int version = static_cast<unsigned char>(start[kMagic.size()]);
  if (version < 1 || version > 3 || start[kMagic.size() + 1] != 0)
    fail(concat("has the format's version ", version, ".",
                static_cast<int>(static_cast<unsigned char>(start[kMagic.size() + 1])),
                "; expected 1.0, 2.0 or 3.0"));
  const std::size_t of_length = version == 1 ? 2 : 4, text_at = kMagic.size() + 2 + of_length;
  if (start.size() < text_at) fail("is truncated: its header is incomplete");
  const std::uint64_t length = little_endian(start.substr(kMagic.size() + 2, of_length));
  if (length > kNpyHeaderBytes - text_at)
    fail(concat("announces a header of ", counted(length, "byte"), "; expected at most ",
                kNpyHeaderBytes - text_at));
  if (start.size() < text_at + length) fail("is truncated: its header is incomplete");
  Dictionary dictionary(start.substr(text_at, length), where);
  dictionary.read();
  NpyHeader header{.type = type_of(*dictionary.descr, where),
                   .shape = *std::move(dictionary.shape),
                   .fortran_order = *dictionary.fortran_order,
                   .begin = text_at + length};
  for (const std::int64_t extent : header.shape)
    if (extent == 0) fail(concat("has the shape ", list_text(header.shape), ", without a number"));
  const std::uint64_t there = size - header.begin;
  const std::optional<std::uint64_t> bytes = bytes_of(header, there);
  if (!bytes || *bytes != there)
    fail(concat("has ", counted(there, "byte"), " of data; expected ",
                bytes ? counted(*bytes, "byte") : "more", " for the shape ",
                list_text(header.shape), " of its header"));
  header.bytes = *bytes;
  return header;
}

}  // namespace pipewright
