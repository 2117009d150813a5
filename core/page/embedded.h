// SPDX-License-Identifier: Apache-2.0
/// Files that are compiled into the program for the page (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace pipewright {

extern const std::string_view kPageStyle;   ///< page.css
extern const std::string_view kPageScript;  ///< page.js
extern const std::string_view kPapers;      ///< papers.bib

}  // namespace pipewright
