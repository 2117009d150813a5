/// The stamp that a scheme leaves in the file it is compiled into: its name, and what it was
/// compiled with. A plugin is judged by the stamps among its bytes, before any of its code runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/version.h"

#define PIPEWRIGHT_STAMP_START "pipewright scheme|"

/// "pipewright scheme|0.1.0|libstdc++|half_way" in the read-only data, kept though nobody refers to
/// it.
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

/// Why what has this stamp does not fit this Pipewright, with both versions; "" when it fits.
std::string misfit(const Stamp& stamp);

}  // namespace pipewright
