// SPDX-License-Identifier: Apache-2.0
/// Help for compilers with our own loops over numbers.
///
/// PIPEWRIGHT_VECTORISED before a function compiles it several times, for AVX-512, for AVX2 and for
/// any x86-64 processor; the loader selects the copy for the machine. All copies give the same
/// bits, because such files are compiled without contraction to fused multiply-add.
///
/// PIPEWRIGHT_INDEPENDENT before a loop promises that no pass reads what an earlier one has
/// written.
#pragma once

#include <cstddef>  // defines __GLIBC__ where that is the C library

// The C library must support such a selection; sanitizers are not initialised yet when it happens.
#if defined(__x86_64__) && defined(__GNUC__) && defined(__GLIBC__) &&  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(PIPEWRIGHT_SANITIZED)
#define PIPEWRIGHT_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PIPEWRIGHT_VECTORISED
#endif

#ifdef __clang__
#define PIPEWRIGHT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PIPEWRIGHT_INDEPENDENT _Pragma("GCC ivdep")
#endif
