// SPDX-License-Identifier: Apache-2.0
/// Errors of the whole project: one type, whose kind decides the exit code of the command.
#pragma once

#include <stdexcept>
#include <string>

#include "core/base/text.h"

namespace pipewright {

/// What went wrong, as the exit code of the command line (docs/manual/reference/exit-codes.md).
enum class ErrorKind : int {
  Experiment = 2,    ///< the experiment file or the command line is wrong
  Data = 3,          ///< a data or weights file is missing or damaged, or memory, threads,
                     ///< descriptors or the disk do not suffice
  Schedule = 4,      ///< a scheme produced a schedule that cannot be right
  Worker = 5,        ///< a worker or link failed
  NotFinite = 6,     ///< a loss or a weight is NaN or infinite
  Sweep = 7,         ///< some runs of a sweep failed
  Bug = 70,          ///< a defect of Pipewright itself
  Interrupted = 130  ///< a signal asked us to stop; the state is saved
};

/// The only exception that leaves a public function. `where` is `file:line:column` of the YAML, or
/// worker, stage and action; empty when there is no place. what() is "where: message" with `where`
/// made printable, so that a file name cannot begin another line.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string where = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string where_;
};

[[noreturn]] void throw_bug(const char* condition, const char* file, int line,
                            const std::string& detail);

}  // namespace pipewright

/// Throws Error{Bug} unless the condition holds. It must hold whatever a user does: a failure is a
/// defect of our own code. Further arguments are concatenated and say more.
#define PIPEWRIGHT_CHECK(condition, ...)                                                          \
  do {                                                                                            \
    if (!(condition)) [[unlikely]]                                                                \
      ::pipewright::throw_bug(#condition, __FILE__, __LINE__, ::pipewright::concat(__VA_ARGS__)); \
  } while (false)
