// SPDX-License-Identifier: Apache-2.0
#include "core/system/utc.h"

#include <ctime>

namespace pipewright {

std::string utc_now(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &utc)};
}

}  // namespace pipewright
