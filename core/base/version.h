/// The version of these headers: Pipewright's own, and of whatever is compiled with them. CMake
/// reads it here too. Versions that differ in more than the last number do not fit together.
#pragma once

#include <cstddef>  // says which standard library this is

#define PIPEWRIGHT_VERSION "0.4.0"

/// Types of the standard library cross the border to a plugin, so both sides must mean the same.
#if defined(_LIBCPP_VERSION)
#define PIPEWRIGHT_STANDARD_LIBRARY "libc++"
#elif defined(_GLIBCXX_DEBUG)
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++ with _GLIBCXX_DEBUG"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++ with the old ABI"
#else
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++"
#endif
