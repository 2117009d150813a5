/// One attempt to get a file, or the rest of it, over HTTP.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "core/fetch/part_file.h"

namespace pipewright {

struct Transfer {
  std::string address;
  std::uint64_t size_in_bytes;                       ///< of the whole file
  int patience_in_seconds;                           ///< without a byte, until we give up
  std::function<void(std::uint64_t done)> progress;  ///< bytes of the file so far; may be empty
  const std::atomic<bool>* stop = nullptr;
};

struct TransferEnd {
  enum class Kind : std::uint8_t {
    Complete,     ///< the part has all bytes
    Interrupted,  ///< `stop` was set
    NotThatPart,  ///< the server has no such rest: the part must be started again
    Lost,         ///< the connection was: trying again may help
    Refused,      ///< the server has no such file
    NoServer      ///< nobody who answers
  };
  Kind kind;
  std::string reason;  ///< of the last three
};

/// Asks for what is missing of the part, starting it again if the server only sends whole files;
/// writes nothing if the server's file has another size. Follows redirections, to http and https
/// only; names that a server sends are not looked at. Throws Error{Data} if the part cannot be
/// written.
TransferEnd transfer(const Transfer& wanted, PartFile& part);

}  // namespace pipewright
