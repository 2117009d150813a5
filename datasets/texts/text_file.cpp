// SPDX-License-Identifier: Apache-2.0
#include "datasets/texts/text_file.h"

#include <algorithm>
#include <iterator>

#include "core/base/error_at.h"
#include "core/base/utf8.h"
#include "core/system/file.h"
#include "datasets/archives/gzip.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some programs begin UTF-8 with it

bool on_disk(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::filesystem::path gzipped(const std::filesystem::path& path) {
  return path.string() + ".gz";
}

/// Refuses files with very many very short lines, because every line that is kept takes some fifty
/// bytes of memory.
void check_lines(std::string_view text, const std::filesystem::path& path) {
  constexpr std::ptrdiff_t kAlways = 1 << 20, kShortest = 8;
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (lines > kAlways && std::ssize(text) < kShortest * lines)
    throw data_error(path, "has ", lines, " lines in ", text.size(), " bytes, which is no text");
}

/// The most bytes that a gzipped text may unpack to. Real texts shrink to about a third, not to a
/// hundredth, so anything beyond that is a decompression bomb.
std::uint64_t limit_of(const std::filesystem::path& packed) {
  constexpr std::uint64_t kAlways = std::uint64_t{16} << 20, kTimes = 100;
  std::error_code unknown;
  const std::uint64_t size = std::filesystem::file_size(packed, unknown);
  return unknown ? kLimit : std::min(kLimit, std::max(kAlways, kTimes * std::min(size, kLimit)));
}

}  // namespace

bool text_is_there(const std::filesystem::path& path) {
  return on_disk(path) || on_disk(gzipped(path));
}

std::string read_text(const std::filesystem::path& path, const std::string& origin) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw data_error(path, "is a folder; expected a file");
  if (!text_is_there(path))
    throw data_error(path, "no such file, nor ", path.filename().string(), ".gz beside it. It is ",
                     origin);
  const bool packed = !on_disk(path);
  const std::filesystem::path read = packed ? gzipped(path) : path;
  std::string text = packed ? read_gzip(read, limit_of(read)) : read_file(read, kLimit);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (text.empty()) throw data_error(read, "is empty");
  const std::size_t valid = valid_utf8(text);
  if (valid < text.size())
    throw_bad_line(read,
                   1 + static_cast<std::size_t>(std::count(
                           text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n')),
                   "is not UTF-8; save the file as UTF-8");
  check_lines(text, read);
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kAsciiSpace); at < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kAsciiSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kAsciiSpace, end);
  }
  return words;
}

void throw_bad_line(const std::filesystem::path& path, std::size_t line, const std::string& what) {
  throw data_error(path, "line ", line, " ", what);
}

}  // namespace pipewright
