/// What is fuzzed: readers of bytes that come from elsewhere. To add one, add a line to kTargets in
/// targets.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace pipewright::fuzz {

using Bytes = std::vector<std::byte>;

struct Target {
  const char* name;
  /// Reads the bytes; may throw Error{Data}, and nothing else.
  void (*read)(std::span<const std::byte> bytes);
  /// What is to be changed: bytes that read() takes.
  std::vector<Bytes> (*seeds)();
};

std::span<const Target> targets();

/// read() of the target, where other exceptions than Error{Data} end the program. Whether it took
/// the bytes.
bool takes(const Target& target, std::span<const std::byte> bytes);

}  // namespace pipewright::fuzz
