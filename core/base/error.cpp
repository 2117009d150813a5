#include "core/base/error.h"

namespace pipewright {

void throw_bug(const char* condition, const char* file, int line, const std::string& detail) {
  throw Error(ErrorKind::Bug,
              concat("this is a bug in Pipewright: '", condition, "' does not hold",
                     detail.empty() ? "" : ": ", detail),
              concat(file, ":", line));
}

}  // namespace pipewright
