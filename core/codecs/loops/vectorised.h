/// Loops over tensors, compiled several times: for AVX-512, for AVX2 and for any processor. Which
/// copy runs is decided when the program is loaded. All give the same bits (such files are compiled
/// without contraction of products and sums).
#pragma once

#include <cstddef>  // defines __GLIBC__ where that is the C library

// Needs a C library that can choose; sanitizers are not ready yet when it does.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PIPEWRIGHT_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PIPEWRIGHT_VECTORISED
#endif
