// SPDX-License-Identifier: Apache-2.0
/// Runs a program: in `serial` one thread steps all workers in a fixed order, in `threads` each
/// worker has a thread, in `mpi` each has a process. All three run the same instructions and give
/// the same bits.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/program.h"
#include "core/runtime/run_request.h"
#include "core/stage/stage.h"

namespace pipewright {

/// `stages` is indexed [replica · N + stage] and null where this process does not hold the worker.
/// With a team the call is collective and every process returns the same result. Throws
/// Error{NotFinite} with stage, mini-batch and weight version at the first loss that is not finite
/// (on a device other than a CPU up to one mini-batch late), Error{Interrupted} after a signal, and
/// Error{Worker} with worker, stage and action for anything a stage throws. After a throw the
/// stages cannot be used any more.
RunResult execute(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                  const RunRequest& request);

}  // namespace pipewright
