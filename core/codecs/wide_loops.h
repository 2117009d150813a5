/// For loops over millions of numbers: compiled several times, for the widest vectors that the
/// machine at hand has, and cut into pieces for several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

/// Before a function: one copy for AVX-512, one for AVX2 and one for any processor, chosen when the
/// program is loaded. Needs a C library that can choose; sanitizers are not ready that early.
#if defined(__x86_64__) && defined(__GNUC__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PIPEWRIGHT_WIDE __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PIPEWRIGHT_WIDE
#endif

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
