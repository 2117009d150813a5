#include "datasets/archives/tar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kLongestExtension = 1 << 16;
constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostAfterTheEnd = 1 << 24;  // tar fills its last record with zeros

std::uint64_t filled(std::uint64_t size) {
  return (size + kBlock - 1) / kBlock * kBlock;
}

/// Text up to the first NUL.
std::string_view text_of(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

/// Octal digits among spaces and NULs, or GNU's big-endian binary; false for anything else.
bool read_number(std::string_view field, std::uint64_t& value) {
  value = 0;
  if ((field[0] & 0x80) != 0) {
    for (std::size_t i = 0; i < field.size(); ++i) {
      const auto byte = static_cast<std::uint8_t>(field[i]);
      if (value >> 48 != 0) return false;
      value = value << 8 | (i == 0 ? byte & 0x7fu : byte);
    }
    return true;
  }
  const std::string_view digits = trimmed(text_of(field));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  return digits.empty() || (error == std::errc() && end == digits.data() + digits.size());
}

bool leads_out(const std::string& name) {
  if (name.empty() || name.front() == '/') return true;
  const std::vector<std::string> parts = split(name, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

}  // namespace

struct TarReader::Header {
  std::array<char, kBlock> bytes;

  std::string_view field(std::size_t offset, std::size_t length) const {
    return std::string_view(bytes.data(), bytes.size()).substr(offset, length);
  }
  char type() const { return bytes[156]; }
  bool is_blank() const {
    return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
  }
  bool checksum_holds() const {
    std::uint64_t stated = 0, sum = 8 * ' ';
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (i < 148 || i >= 156) sum += static_cast<std::uint8_t>(bytes[i]);
    return read_number(field(148, 8), stated) && stated == sum;
  }
  std::string name() const {
    const std::string name(text_of(field(0, 100))), folder(text_of(field(345, 155)));
    return field(257, 6) == std::string_view("ustar\0", 6) && !folder.empty() ? folder + "/" + name
                                                                              : name;
  }
};

TarReader::TarReader(const std::filesystem::path& archive) : archive_(archive), input_(archive) {}

void TarReader::fail(const std::string& what) const {
  throw Error(ErrorKind::Data, what, archive_.string());
}

bool TarReader::read_header(Header& header) {
  const std::uint64_t got = input_.read(header.bytes.data(), kBlock);
  if (got < kBlock) fail("the archive ends too early: it is truncated");
  if (header.is_blank()) return false;
  if (!header.checksum_holds())
    fail(concat("no tar archive, or damaged: wrong checksum of the header after '", name_, "'"));
  if (!read_number(header.field(124, 12), size_) || size_ > kLargestFile)
    fail(concat("damaged tar archive: the header after '", name_, "' states no size"));
  return true;
}

bool TarReader::next() {
  skip_rest();
  long_name_.clear();
  has_long_size_ = false;
  Header header;
  while (read_header(header)) {
    switch (header.type()) {
      case 'L': long_name_ = std::string(text_of(extension_text(header))); break;
      case 'x': take_pax(extension_text(header)); break;
      case 'g':
      case 'K': extension_text(header); break;
      default:
        accept(header);
        const bool folder = header.type() == '5' || name_.ends_with('/');
        if (!folder) return true;
        skip_rest();
        long_name_.clear();
        has_long_size_ = false;
    }
  }
  read_to_end();
  return false;
}

std::string TarReader::extension_text(const Header& header) {
  if (size_ > kLongestExtension)
    fail(concat("damaged tar archive: extension '", header.type(), "' of ", size_, " bytes"));
  unread_ = filled(size_);
  return content(kLongestExtension);
}

/// Records "<length> <key>=<value>\n".
void TarReader::take_pax(const std::string& records) {
  std::string_view rest = records;
  while (!rest.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 3)
      fail("damaged tar archive: pax record of wrong length");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    const std::size_t equals = std::min(record.find('='), record.size() - 1);
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") long_name_ = std::string(value);
    if (key == "size") {
      const auto [stop, wrong] =
          std::from_chars(value.data(), value.data() + value.size(), long_size_);
      if (wrong != std::errc() || stop != value.data() + value.size() || long_size_ > kLargestFile)
        fail("damaged tar archive: pax record with no size");
      has_long_size_ = true;
    }
    rest.remove_prefix(length);
  }
}

void TarReader::accept(const Header& header) {
  name_ = long_name_.empty() ? header.name() : long_name_;
  while (name_.starts_with("./") && name_.size() > 2) name_.erase(0, 2);
  if (has_long_size_) size_ = long_size_;
  if (leads_out(name_)) fail(concat("member '", name_, "' leads out of the archive"));
  constexpr std::array kPlain{'0', '\0', '7', '5'};  // '5': a folder
  if (std::find(kPlain.begin(), kPlain.end(), header.type()) == kPlain.end())
    fail(concat("member '", name_, "' is a link or another special file"));
  unread_ = header.type() == '5' ? 0 : filled(size_);
}

std::string TarReader::content(std::uint64_t limit_in_bytes) {
  if (size_ > limit_in_bytes)
    fail(concat("member '", name_, "' has ", size_, " bytes, at most ", limit_in_bytes,
                " are read"));
  PIPEWRIGHT_CHECK(unread_ == filled(size_), "read twice: ", name_);
  std::string bytes(unread_, '\0');
  const std::uint64_t got = input_.read(bytes.data(), unread_);
  if (got < unread_) fail(concat("the archive ends within member '", name_, "': it is truncated"));
  unread_ = 0;
  bytes.resize(size_);
  return bytes;
}

void TarReader::skip_rest() {
  std::array<char, 1 << 14> bytes;
  while (unread_ > 0) {
    const std::uint64_t part = std::min<std::uint64_t>(unread_, bytes.size());
    const std::uint64_t got = input_.read(bytes.data(), part);
    if (got < part) fail(concat("the archive ends within member '", name_, "': it is truncated"));
    unread_ -= part;
  }
}

/// So that gzip's checksum, at the end of the file, is seen.
void TarReader::read_to_end() {
  std::array<char, 1 << 14> bytes;
  for (std::uint64_t more = 0, got = 1; got > 0; more += got) {
    if (more > kMostAfterTheEnd) fail("other data follow the end of the archive");
    got = input_.read(bytes.data(), bytes.size());
  }
}

}  // namespace pipewright
