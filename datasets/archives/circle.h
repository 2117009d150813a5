// SPDX-License-Identifier: Apache-2.0
/// Detects symbolic links that form a cycle, by the depth of the folders that they lead to.
#pragma once

#include <filesystem>

#include "core/base/error_at.h"

namespace pipewright {

/// Throws Error{Data} at `place` if it lies deeper below a data set's folder than any real file
/// does: following the links would visit the same files for ever.
inline void refuse_circle(int depth, const std::filesystem::path& place) {
  constexpr int kDeepest = 20;
  if (depth <= kDeepest) return;
  throw data_error(place, "folders nest deeper than ", kDeepest,
                   " levels: a symbolic link leads in a circle; remove it");
}

}  // namespace pipewright
