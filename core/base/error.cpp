// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include "core/base/printable.h"

namespace pipewright {

Error::Error(ErrorKind kind, std::string message, std::string where)
    : std::runtime_error(where.empty() ? message : concat(printable(where), ": ", message)),
      kind_(kind),
      message_(std::move(message)),
      where_(std::move(where)) {}

void throw_bug(const char* condition, const char* file, int line, const std::string& detail) {
  throw Error(ErrorKind::Bug,
              concat("this is a bug in Pipewright: '", condition, "' does not hold",
                     detail.empty() ? "" : ": ", detail),
              concat(file, ":", line));
}

}  // namespace pipewright
