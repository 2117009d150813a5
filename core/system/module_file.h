/// Parts of the program that are loaded only when they are needed: MPI, CUDA kernels.
#pragma once

#include <filesystem>

namespace pipewright {

/// Where the module of that name ("libpipewright_mpi.so") is: beside the program, a folder above
/// it, or in lib/pipewright where the program was installed. Empty: it was not built.
std::filesystem::path module_file(const char* name);

}  // namespace pipewright
