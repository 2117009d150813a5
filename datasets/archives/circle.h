/// Symbolic links that lead in a circle, seen from the depth of what lies below them.
#pragma once

#include <filesystem>

#include "core/base/error.h"

namespace pipewright {

/// Throws Error{Data} at `place` when it lies deeper below a data set's folder than any file of one
/// does: following the link would show the same files again and again.
inline void refuse_circle(int depth, const std::filesystem::path& place) {
  constexpr int kDeepest = 20;
  if (depth <= kDeepest) return;
  throw Error(ErrorKind::Data,
              concat("folders nest deeper than ", kDeepest,
                     " levels: a symbolic link leads in a circle; remove it"),
              place.string());
}

}  // namespace pipewright
