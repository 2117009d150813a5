// SPDX-License-Identifier: Apache-2.0
/// Text files of data sets: UTF-8, plain or gzipped, read as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Whether the file exists, plain or with ".gz" appended to its name.
bool text_is_there(const std::filesystem::path& path);

/// Reads `path`, or else unpacks `path`.gz. Throws Error{Data} if both are missing (with `origin`,
/// which says whose file it is and where to get it), or if the file is damaged, empty, larger than
/// 1 GiB, or not UTF-8 (with the line).
std::string read_text(const std::filesystem::path& path, const std::string& origin);

/// The lines without their ends ("\n" or "\r\n"); a final line end starts no further line. The
/// views are valid as long as the text.
std::vector<std::string_view> lines_of(std::string_view text);

/// ASCII white space.
inline constexpr std::string_view kAsciiSpace = " \t\n\v\f\r";

/// The words of a line, separated by ASCII white space.
std::vector<std::string_view> words_of(std::string_view line);

/// Throws Error{Data} "path: line N …"; `line` counts from 1, as editors do.
[[noreturn]] void throw_bad_line(const std::filesystem::path& path, std::size_t line,
                                 const std::string& what);

}  // namespace pipewright
