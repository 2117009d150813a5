// SPDX-License-Identifier: Apache-2.0
/// The stamp that a scheme leaves in the file it is compiled into: its name, and what it was
/// compiled with. The loader reads the stamps in the bytes of a plugin file and refuses a plugin
/// that does not fit before any of its code runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/version.h"

#define PIPEWRIGHT_STAMP_START "pipewright scheme|"

/// Puts a stamp such as "pipewright scheme|0.1.0|libstdc++|half_way" into the read-only data. The
/// attributes make compiler and linker keep it although no code refers to it.
#define PIPEWRIGHT_STAMP(name)                                         \
  [[gnu::used, gnu::retain]] static constexpr char stamp_of_##name[] = \
      PIPEWRIGHT_STAMP_START PIPEWRIGHT_VERSION "|" PIPEWRIGHT_STANDARD_LIBRARY "|" #name;

namespace pipewright {

struct Stamp {
  std::string version;  ///< "0.1.0"
  std::string standard_library;
  std::string name;
  bool operator==(const Stamp&) const = default;
};

/// All stamps in a file's bytes, in their order there.
std::vector<Stamp> read_stamps(std::string_view bytes);

/// Why a plugin with this stamp does not fit this Pipewright, naming both versions; "" when it
/// fits.
std::string misfit(const Stamp& stamp);

}  // namespace pipewright
