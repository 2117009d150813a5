/// What the standard library, LibTorch and the system throw, in this project's terms. Whoever lets
/// exceptions out of a process, a run or a worker asks here, so that a user reads one line with the
/// exit code that the README promises.
#pragma once

#include <exception>
#include <optional>

#include "core/base/error.h"

namespace pipewright {

/// Memory that could not be had, a thread that could not be started or a file system's refusal;
/// nullopt where the machine is not to blame. `resource`: the kind of error that a lack of memory,
/// threads or descriptors is, ErrorKind::Worker in a worker that is a process of its own.
std::optional<Error> machine_error(const std::exception& error,
                                   ErrorKind resource = ErrorKind::Data);

/// The same for whatever comes: an Error as it is, and what nobody can have caused but we ourselves
/// as Error{Bug}.
Error foreign_error(const std::exception& error, ErrorKind resource = ErrorKind::Data);

/// What was thrown, without LibTorch's stack trace behind the first line.
std::string first_line(const std::exception& error);

/// "a thread for `whose` cannot be started", with the reason and the limit.
Error thread_error(const std::string& whose, const std::exception& error,
                   ErrorKind resource = ErrorKind::Data);

}  // namespace pipewright
