/// Loads the MPI half of the program, which is a module of its own: without MPI everything else
/// works.
#pragma once

#include <memory>

#include "core/runtime/processes/wire.h"

namespace pipewright {

/// Whether this installation has the module.
bool mpi_is_built();

/// Initialises MPI; once in a process. Throws Error{Experiment} where the module is missing or does
/// not load, saying what to install.
std::unique_ptr<Wire> mpi_wire();

}  // namespace pipewright
