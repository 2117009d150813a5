// SPDX-License-Identifier: Apache-2.0
/// Numbers as texts, in the formats of std::printf.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace pipewright {

/// The text of these numbers, of at most 399 characters.
template <class... Numbers>
std::string printed(const char* format, Numbers... numbers) {
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), format, numbers...);
  return text.data();
}

/// A number with at most so many significant digits: "0.03478".
inline std::string rounded_text(double number, int digits = 4) {
  return printed("%.*g", digits, number);
}

}  // namespace pipewright
