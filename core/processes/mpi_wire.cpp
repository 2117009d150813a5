// SPDX-License-Identifier: Apache-2.0
#include "core/processes/mpi_wire.h"

#include <dlfcn.h>

#include "core/base/error.h"
#include "core/system/module_file.h"

namespace pipewright {
namespace {

constexpr const char* kModule = "libpipewright_mpi.so";

}  // namespace

bool mpi_is_built() {
  return !module_file(kModule).empty();
}

std::unique_ptr<Wire> mpi_wire() {
  const auto file = module_file(kModule);
  if (file.empty())
    throw Error(
        ErrorKind::Experiment,
        concat("pipeline.execution is mpi, but ", std::string_view(kModule),
               " is missing beside the program, so this build is without MPI; install "
               "libopenmpi-dev and openmpi-bin and run tools/setup again, or set execution: "
               "threads"));
  // MPI's own plug-ins resolve its symbols in the global scope.
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr)
    throw Error(ErrorKind::Experiment, concat("MPI cannot be loaded: ", ::dlerror()));
  using Open = Wire* (*)();
  const auto open = reinterpret_cast<Open>(::dlsym(module, "pipewright_open_wire"));
  PIPEWRIGHT_CHECK(open != nullptr, file.string(), " has no pipewright_open_wire");
  return std::unique_ptr<Wire>(open());
}

}  // namespace pipewright
