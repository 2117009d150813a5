/// Work on millions of numbers, cut into pieces for several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace pipewright {

/// Calls work(begin, end) for pieces that together are [0, n), each once, maybe on several threads;
/// a piece is worth a thread of its own from `grain` on.
using ForPieces =
    std::function<void(std::int64_t n, std::int64_t grain,
                       const std::function<void(std::int64_t begin, std::int64_t end)>& work)>;

inline void in_one_piece(std::int64_t n, std::int64_t /*grain*/,
                         const std::function<void(std::int64_t, std::int64_t)>& work) {
  if (n > 0) work(0, n);
}

}  // namespace pipewright
