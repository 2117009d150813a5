// SPDX-License-Identifier: Apache-2.0
/// Loads the MPI half of the program. It is a module of its own, so that the rest works without
/// MPI.
#pragma once

#include <memory>

#include "core/processes/wire.h"

namespace pipewright {

/// Whether this installation has the module.
bool mpi_is_built();

/// Loads the module and initialises MPI. Call it once per process. Throws Error{Experiment}, which
/// says what to install, if the module is missing or cannot be loaded.
std::unique_ptr<Wire> mpi_wire();

}  // namespace pipewright
