// SPDX-License-Identifier: Apache-2.0
/// Numbers of this room as texts.
#pragma once

#include <cstdio>
#include <string>

namespace pipewright {

/// Four digits: "0.03478".
inline std::string short_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

}  // namespace pipewright
