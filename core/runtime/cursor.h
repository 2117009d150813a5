// SPDX-License-Identifier: Apache-2.0
/// Walks through the instructions of one worker, round after round of the program's loop.
#pragma once

#include <vector>

#include "core/runtime/program.h"

namespace pipewright {

/// Belongs to one thread. Memory: a copy of the worker's instructions if the program has a loop.
class Cursor {
 public:
  /// The program must outlive it.
  Cursor(const Program& program, int worker);

  /// Whether all instructions have been given.
  bool done() const { return next_ == instructions().size(); }
  /// The next instruction, valid until the next call.
  const Instruction& next();

 private:
  const std::vector<Instruction>& instructions() const { return loop_ ? own_ : given_; }

  const Program& program_;
  const std::vector<Instruction>& given_;
  const Loop* loop_;  ///< null: the program has none
  Loop::Part body_;
  std::vector<Instruction> own_;  ///< each as it is when it is performed next
  std::size_t next_ = 0;
  int round_ = 0;
};

}  // namespace pipewright
