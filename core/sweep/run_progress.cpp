// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/run_progress.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace pipewright {
namespace {

/// "2/5" at the beginning of a text as 0.4, and what follows it.
std::optional<double> leading_share(std::string_view& text) {
  std::int64_t part = 0, whole = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, part);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, whole);
  if (second.ec != std::errc() || whole < 1 || part < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(second.ptr - text.data()));
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

std::optional<double> share_of_line(std::string_view line) {
  std::string_view behind = " mini-batches, ";
  for (const std::string_view what : {"epoch ", "mini-batch "})
    if (line.starts_with(what)) line.remove_prefix(what.size()), behind = "  ";
  const std::optional<double> share = leading_share(line);
  return line.starts_with(behind) ? share : std::nullopt;
}

}  // namespace

double trained_share(std::string_view log) {
  while (!log.empty()) {
    const std::size_t begin = log.find_last_of('\n');
    const std::string_view line = begin == std::string_view::npos ? log : log.substr(begin + 1);
    if (const std::optional<double> share = share_of_line(line)) return *share;
    if (begin == std::string_view::npos) break;
    log = log.substr(0, begin);
  }
  return 0;
}

double trained_share(const std::filesystem::path& log, std::uintmax_t start) {
  constexpr std::uintmax_t kMost = 16384;  // bytes, in which a line about an epoch is found
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(log, none);
  if (none || size <= start) return 0;
  std::ifstream file(log, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(std::max(start, size > kMost ? size - kMost : 0)));
  std::string text(kMost, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return trained_share(text);
}

}  // namespace pipewright
