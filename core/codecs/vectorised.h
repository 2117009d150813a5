/// Loops over tensors, compiled twice: for any processor, and for those with AVX2. Which one runs
/// is decided when the program is loaded. Both give the same bits (such files are compiled without
/// contraction of products and sums).
#pragma once

// Sanitizers are not ready yet when a loader decides.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PIPEWRIGHT_VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define PIPEWRIGHT_VECTORISED
#endif
