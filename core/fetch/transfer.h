// SPDX-License-Identifier: Apache-2.0
/// One attempt to download a file, or the rest of it, over HTTP.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "core/fetch/part_file.h"

namespace pipewright {

struct Transfer {
  std::string address;
  std::uint64_t size_in_bytes;                       ///< size of the whole file
  int patience_in_seconds;                           ///< time without a byte before giving up
  std::function<void(std::uint64_t done)> progress;  ///< bytes of the file so far; may be empty
  const std::atomic<bool>* stop = nullptr;
};

struct TransferEnd {
  enum class Kind : std::uint8_t {
    Complete,     ///< the part has all bytes
    Interrupted,  ///< `stop` was set
    NotThatPart,  ///< the server cannot send the rest: start from the beginning
    Lost,         ///< the connection was lost: trying again may help
    Refused,      ///< the server has no such file
    NoServer      ///< no server answers
  };
  Kind kind;
  std::string reason;  ///< for Lost, Refused and NoServer
};

/// Requests the missing bytes of the part, or starts it again if the server only sends whole files.
/// Writes nothing if the server's file has another size. Follows redirections to http and https
/// only; ignores file names that a server sends. Throws Error{Data} if the part cannot be written.
TransferEnd transfer(const Transfer& wanted, PartFile& part);

}  // namespace pipewright
