// SPDX-License-Identifier: Apache-2.0
/// Cuts work on many numbers into pieces for several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace pipewright {

/// A function that calls work(begin, end) for pieces that together cover [0, n) once, possibly on
/// several threads. A piece should have at least `grain` elements.
using ForPieces =
    std::function<void(std::int64_t n, std::int64_t grain,
                       const std::function<void(std::int64_t begin, std::int64_t end)>& work)>;

inline void in_one_piece(std::int64_t n, std::int64_t /*grain*/,
                         const std::function<void(std::int64_t, std::int64_t)>& work) {
  if (n > 0) work(0, n);
}

}  // namespace pipewright
