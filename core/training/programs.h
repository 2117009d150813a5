// SPDX-License-Identifier: Apache-2.0
/// The compiled programs of a training's segments. Segments with equal schedules share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/runtime/program.h"
#include "core/training/plan.h"

namespace pipewright {

/// Not for several threads at once. The plan must outlive it.
class Programs {
 public:
  explicit Programs(const Plan& plan) : plan_(plan) {}

  /// The program of the `minibatches` that follow the first `first` of the training; valid until
  /// the call after the next. A schedule of a scheme that repeats() does not depend on `first` but
  /// for gradients that wait, so that each length is planned and proved once. Throws what
  /// proved_schedule() throws.
  const Program& segment(std::int64_t first, int minibatches);

 private:
  const Program& program_of(std::int64_t first, int minibatches);
  /// Schedule::waiting at a drain point, from the schedules before it.
  std::vector<std::vector<int>> waiting_at(std::int64_t position) const;
  /// A program of so many mini-batches whatever their `first`; null: there is none yet.
  const Program* of_any_first(int minibatches) const;
  /// A program whose actions are these; null: there is none yet.
  const Program* like(const ProvedSchedule& proved, int minibatches) const;

  const Plan& plan_;
  std::deque<Program> kept_;               ///< besides plan_.training
  std::int64_t end_ = 0;                   ///< of the last segment
  std::vector<std::vector<int>> waiting_;  ///< Schedule::waiting there
};

}  // namespace pipewright
