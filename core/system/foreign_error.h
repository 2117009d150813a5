// SPDX-License-Identifier: Apache-2.0
/// Turns exceptions of the standard library, LibTorch and the system into this project's Error.
/// Every place where exceptions leave a process, a run or a worker calls it, so that a user reads
/// one line and gets the exit code that the README promises.
#pragma once

#include <exception>
#include <optional>

#include "core/base/error.h"

namespace pipewright {

/// The Error for an exception that the machine is to blame for: memory ran out, a thread could not
/// be started, or the file system refused; or a number that is too large for a type. nullopt for
/// any other. `resource` is the kind for a lack of memory, threads or descriptors:
/// ErrorKind::Worker in a worker that is a process of its own.
std::optional<Error> machine_error(const std::exception& error,
                                   ErrorKind resource = ErrorKind::Data);

/// The Error for any exception: an Error is returned as it is, machine_error() comes next, and all
/// others are Error{Bug}, because only a defect of our own can have caused them.
Error foreign_error(const std::exception& error, ErrorKind resource = ErrorKind::Data);

/// The first line of what(), behind which LibTorch puts a stack trace. Where an operator has only a
/// kernel that adds in any order, it says so in our words.
std::string first_line(const std::exception& error);

/// The Error "a thread for `whose` cannot be started: …", with the reason and the limit that was
/// reached.
Error thread_error(const std::string& whose, const std::exception& error,
                   ErrorKind resource = ErrorKind::Data);

}  // namespace pipewright
