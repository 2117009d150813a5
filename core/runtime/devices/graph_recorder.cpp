// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/graph_recorder.h"

#include <dlfcn.h>

#include "core/base/error.h"
#include "core/system/module_file.h"
#include "core/tensors/torch.h"

namespace pipewright {

std::unique_ptr<GraphRecorder> cuda_graphs(at::Device device) {
  if (!device.is_cuda())
    throw Error(
        ErrorKind::Experiment,
        concat("graphs are recorded on a CUDA device, and the stages are on ", device.str()));
  const auto file = module_file("libpipewright_graphs.so");
  void* const module = file.empty() ? nullptr : ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw Error(
        ErrorKind::Experiment,
        concat("CUDA graphs: ",
               file.empty() ? "the program was built without CUDA's headers" : ::dlerror()));
  using Make = GraphRecorder*(int device);
  const auto make = reinterpret_cast<Make*>(::dlsym(module, "pipewright_cuda_graphs"));
  PIPEWRIGHT_CHECK(make != nullptr, file.string(), " has no recorder");
  return std::unique_ptr<GraphRecorder>(make(device.index()));
}

}  // namespace pipewright
