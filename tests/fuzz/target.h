// SPDX-License-Identifier: Apache-2.0
/// A fuzz target: a reader of bytes that come from elsewhere, and what must hold whatever they are.
/// Each file in targets/ defines one; an executable has one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace pipewright::fuzz {

struct Target {
  /// Reads the bytes and returns what it made of them, as a text that shows any difference; or
  /// throws Error. It checks with require() what only this reader promises.
  std::string (*read)(std::string_view bytes);
  /// The kinds of Error that the reader may throw.
  std::vector<ErrorKind> refusals = {ErrorKind::Data};
  /// The most bytes that may be allocated at a time while it reads these.
  std::size_t (*most_memory)(std::string_view bytes);
  /// Makes checksums and lengths right again after a change, so that the change is read at all.
  void (*mend)(std::string& bytes) = nullptr;
  std::size_t most_bytes = 4096;  ///< of an input that is made by changing others
  long rounds = 1000;             ///< of a short run: about three seconds on one core
};

/// The one that is linked into this executable.
extern const Target kTarget;

/// Ends the program, saying `what`, unless it holds.
void require(bool holds, const std::string& what);

/// What `read` returns. It reads what the target wrote itself, so an Error ends the program.
template <class Read>
auto reread(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    require(false, concat("what was written is refused: ", error.what()));
    throw;
  }
}

/// What the target made of some bytes.
struct Outcome {
  bool taken = false;
  std::string text;  ///< what was read, or the message of the refusal
};

/// Reads the bytes twice. Ends the program unless both outcomes are equal, errors are of the kinds
/// that the target names, and memory stays within its limit.
Outcome outcome(std::string_view bytes);

/// The most memory that a call of outcome() has used so far, and by how many bytes it was read.
struct Usage {
  std::size_t memory = 0, input = 0;
};
Usage most_used();

}  // namespace pipewright::fuzz
