// SPDX-License-Identifier: Apache-2.0
/// Modules: parts of the program that are loaded only when they are needed (MPI, CUDA kernels).
#pragma once

#include <filesystem>

namespace pipewright {

/// The file of the module of that name ("libpipewright_mpi.so"): beside the program, in the folder
/// above, or in lib/pipewright where the program is installed. Empty if it was not built.
std::filesystem::path module_file(const char* name);

}  // namespace pipewright
