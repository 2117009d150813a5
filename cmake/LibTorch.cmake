# SPDX-License-Identifier: Apache-2.0
# The target pipewright::torch (system includes), without LibTorch's own CMake package: that fails
# where there is no CUDA toolkit or no GPU to probe, and links every CUDA library.
#
# Only the CPU libraries are linked. With PIPEWRIGHT_WITH_CUDA, `device: cuda` loads libtorch_cuda.so at
# run time, so one binary serves machines with and without a GPU. Without it, no CUDA library is
# loaded at all, not even those that libtorch_cpu.so asks for.
include_guard()

set(Torch_DIR "" CACHE PATH "A LibTorch, a site-packages/torch or the folder of a TorchConfig.cmake")
set(PIPEWRIGHT_PYTHON "" CACHE FILEPATH "A Python that has torch")
include(cmake/find_libtorch.cmake)

add_library(pipewright_torch INTERFACE)
add_library(pipewright::torch ALIAS pipewright_torch)
# Headers of a released LibTorch assume NDEBUG: without it RecordFunction has members that the library never sets.
# CMake's Release defines it already.
target_compile_definitions(pipewright_torch INTERFACE $<$<NOT:$<CONFIG:Release>>:NDEBUG>)
target_include_directories(pipewright_torch SYSTEM INTERFACE
  "${PIPEWRIGHT_TORCH_ROOT}/include" "${PIPEWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include")

set(PIPEWRIGHT_CUDA AUTO CACHE STRING "Let device: cuda load LibTorch's CUDA half: ON, OFF or AUTO (where it can be loaded)")
set(PIPEWRIGHT_WITH_CUDA ${PIPEWRIGHT_CUDA})
if(PIPEWRIGHT_CUDA STREQUAL AUTO)
  set(PIPEWRIGHT_WITH_CUDA OFF)
  if(EXISTS "${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cuda.so")
    execute_process(COMMAND ldd "${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cuda.so"
                    OUTPUT_VARIABLE _needs ERROR_QUIET RESULT_VARIABLE _failed)
    if(NOT _failed AND NOT _needs MATCHES "not found")
      set(PIPEWRIGHT_WITH_CUDA ON)
    endif()
  endif()
endif()
message(STATUS "LibTorch with CUDA: ${PIPEWRIGHT_WITH_CUDA}")
if(NOT PIPEWRIGHT_WITH_CUDA)
  include(cmake/no_cuda.cmake)  # first in the link order, so first in the run path
endif()
target_link_libraries(pipewright_torch INTERFACE
  "${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so" "${PIPEWRIGHT_TORCH_ROOT}/lib/libc10.so")
target_link_options(pipewright_torch INTERFACE "LINKER:--allow-shlib-undefined")
