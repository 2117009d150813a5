// SPDX-License-Identifier: Apache-2.0
/// The stamp that a registered part leaves in the file it is compiled into: its kind and name, and
/// what it was compiled with. The loader reads the stamps in the bytes of a plugin file and refuses
/// a plugin that does not fit before any of its code runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/version.h"

#define PIPEWRIGHT_STAMP_START "pipewright part|"
/// In the place of LibTorch's version: the part was compiled without it.
#define PIPEWRIGHT_WITHOUT_LIBTORCH "none"

/// Puts a stamp such as "pipewright part|scheme|0.1.0|libstdc++|none|half_way" into the read-only
/// data. The attributes make compiler and linker keep it although no code refers to it.
#define PIPEWRIGHT_STAMP(kind, libtorch, name)                                            \
  [[gnu::used, gnu::retain]] static constexpr char stamp_of_##kind##_##name[] =           \
      PIPEWRIGHT_STAMP_START #kind "|" PIPEWRIGHT_VERSION "|" PIPEWRIGHT_STANDARD_LIBRARY \
                                   "|" libtorch "|" #name;

namespace pipewright {

struct Stamp {
  std::string kind;     ///< "scheme"
  std::string version;  ///< "0.1.0"
  std::string standard_library;
  std::string libtorch;  ///< "2.11.0", or PIPEWRIGHT_WITHOUT_LIBTORCH
  std::string name;
  bool operator==(const Stamp&) const = default;
};

/// All stamps in a file's bytes, in their order there.
std::vector<Stamp> read_stamps(std::string_view bytes);

/// Why a plugin with this stamp does not fit this Pipewright with that LibTorch, naming both
/// versions; "" when it fits.
std::string misfit(const Stamp& stamp, std::string_view libtorch);

}  // namespace pipewright
