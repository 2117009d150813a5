// SPDX-License-Identifier: Apache-2.0
/// One attempt to download a file, or the rest of it, over HTTP.
#pragma once

#include <cstdint>
#include <string>

#include "core/fetch/fetch.h"
#include "core/fetch/part_file.h"

namespace pipewright {

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
TransferEnd transfer(const Download& wanted, const DownloadWatch& watch, PartFile& part);

}  // namespace pipewright
