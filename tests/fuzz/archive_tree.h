// SPDX-License-Identifier: Apache-2.0
/// What the targets for archives have in common.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace pipewright::fuzz {

/// The files of an archive, as data sets read them: those wanted, within the limits of a test. Each
/// file's content is checked against its limit. Throws Error{Data}.
std::map<std::string, std::string> tree_in(std::string_view archive);

/// Without files whose names other programs would write otherwise: empty ones, and those with a
/// NUL.
std::map<std::string, std::string> packable(std::map<std::string, std::string> tree);

/// Names and contents.
std::string text_of(const std::map<std::string, std::string>& tree);

/// What tree_in() may need beside the archive: both limits' worth, and the library's buffers.
inline constexpr std::size_t kTreeMemory = std::size_t{4} << 20;

}  // namespace pipewright::fuzz
