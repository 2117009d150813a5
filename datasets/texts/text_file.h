/// Text files of data sets: plain or gzipped, UTF-8, read in one go.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// True if there is such a file, plain or with ".gz" behind its name.
bool text_is_there(const std::filesystem::path& path);

/// The content of `path`, else of `path`.gz, unpacked. `origin` says whose file that is and where
/// to get it; it ends up in the error when both are missing. Throws Error{Data} also when the file
/// is damaged, empty, larger than 1 GiB, or not UTF-8 (with the line).
std::string read_text(const std::filesystem::path& path, const std::string& origin);

/// Lines without their ends ("\n" or "\r\n"); there is no empty line after the last end. The views
/// last as long as the text.
std::vector<std::string_view> lines_of(std::string_view text);

/// The words of a line between blanks, tabs and other white space of ASCII.
std::vector<std::string_view> words_of(std::string_view line);

/// Throws Error{Data} "path: line N …", counted from 1 as editors do.
[[noreturn]] void throw_bad_line(const std::filesystem::path& path, std::size_t line,
                                 const std::string& what);

}  // namespace pipewright
