// SPDX-License-Identifier: Apache-2.0
/// The version of Pipewright and of every plugin compiled with these headers. CMake reads it from
/// here. Versions that differ in more than the third number are incompatible; so are a candidate
/// ("1.0.0-rc.1") and any other version.
#pragma once

#include <cstddef>  // says which standard library this is

#define PIPEWRIGHT_VERSION "1.0.0"

/// Objects of standard-library types pass between the program and its plugins, so both must be
/// compiled with the same library and ABI.
#if defined(_LIBCPP_VERSION)
#define PIPEWRIGHT_STANDARD_LIBRARY "libc++"
#elif defined(_GLIBCXX_DEBUG)
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++ with _GLIBCXX_DEBUG"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++ with the old ABI"
#else
#define PIPEWRIGHT_STANDARD_LIBRARY "libstdc++"
#endif
