/// Runs a program: `serial`, one thread stepping all workers in a fixed order; `threads`, one
/// thread per worker; `mpi`, one process per worker. The same instructions, the same bits.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/program.h"
#include "core/runtime/run_request.h"
#include "core/stage/stage.h"

namespace pipewright {

/// stages: [replica · N + stage]; null where this process does not hold the worker. With a team the
/// call is collective and every process returns the same. Throws Error{NotFinite} with stage,
/// mini-batch and weight version at the first loss that is not finite (which on another device than
/// a CPU is seen up to one mini-batch later), Error{Interrupted}, or
/// Error{Worker} naming worker, stage and action for anything a stage throws; then the stages are
/// of no further use.
RunResult execute(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
                  const RunRequest& request);

}  // namespace pipewright
