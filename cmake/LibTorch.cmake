# Finds LibTorch without its own CMake package, which fails where there is no CUDA toolkit or no GPU
# to probe and links every CUDA library. Gives the target pipewright::torch (system includes).
#
# Looked for, in this order: Torch_DIR (a folder of TorchConfig.cmake, a LibTorch or a site-packages/torch),
# the Python of PIPEWRIGHT_PYTHON, the private environment that tools/setup makes, python3 on the PATH.
include_guard()

function(pipewright_python_torch python out)
  set(${out} "" PARENT_SCOPE)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND folder)
    set(${out} "${folder}" PARENT_SCOPE)
  endif()
endfunction()

set(Torch_DIR "$ENV{Torch_DIR}" CACHE PATH "A LibTorch, a site-packages/torch or the folder of a TorchConfig.cmake")
set(PIPEWRIGHT_PYTHON "" CACHE FILEPATH "A Python that has torch")

set(_candidates)
if(Torch_DIR)
  get_filename_component(_up "${Torch_DIR}/../../.." ABSOLUTE)
  list(APPEND _candidates "${Torch_DIR}" "${_up}")
else()
  if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(_cache "$ENV{XDG_CACHE_HOME}")
  else()
    set(_cache "$ENV{HOME}/.cache")
  endif()
  file(GLOB _private "${_cache}/pipewright/torch-*/lib/python3*/site-packages/torch")
  foreach(_python ${PIPEWRIGHT_PYTHON} python3)
    pipewright_python_torch(${_python} _folder)
    if(_folder)
      list(APPEND _candidates "${_folder}")
    endif()
  endforeach()
  list(APPEND _candidates ${_private})
endif()

set(PIPEWRIGHT_TORCH_ROOT "")
foreach(_root ${_candidates})
  if(NOT PIPEWRIGHT_TORCH_ROOT AND EXISTS "${_root}/include/ATen/ATen.h" AND EXISTS "${_root}/lib/libtorch_cpu.so")
    set(PIPEWRIGHT_TORCH_ROOT "${_root}")
  endif()
endforeach()
if(NOT PIPEWRIGHT_TORCH_ROOT)
  message(FATAL_ERROR
    "LibTorch not found (looked in: ${_candidates}). Run tools/setup, or give -DTorch_DIR=… or -DPIPEWRIGHT_PYTHON=….")
endif()

file(STRINGS "${PIPEWRIGHT_TORCH_ROOT}/include/torch/headeronly/version.h" _version
     REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
if(NOT _version)
  file(STRINGS "${PIPEWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include/torch/version.h" _version
       REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
endif()
string(REGEX REPLACE "[^0-9;]" "" _version "${_version}")
string(REPLACE ";" "." PIPEWRIGHT_TORCH_VERSION "${_version}")
if(PIPEWRIGHT_TORCH_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR "LibTorch ${PIPEWRIGHT_TORCH_VERSION} in ${PIPEWRIGHT_TORCH_ROOT} is too old; 2.6 or later is needed")
endif()
message(STATUS "LibTorch ${PIPEWRIGHT_TORCH_VERSION}: ${PIPEWRIGHT_TORCH_ROOT}")

add_library(pipewright_torch INTERFACE)
add_library(pipewright::torch ALIAS pipewright_torch)
target_include_directories(pipewright_torch SYSTEM INTERFACE
  "${PIPEWRIGHT_TORCH_ROOT}/include" "${PIPEWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include")
target_link_directories(pipewright_torch INTERFACE "${PIPEWRIGHT_TORCH_ROOT}/lib")
# Only the CPU libraries are linked. Where the same folder holds libtorch_cuda.so, `device: cuda`
# loads it at run time, so one binary serves machines with and without a GPU.
target_link_libraries(pipewright_torch INTERFACE
  "${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so" "${PIPEWRIGHT_TORCH_ROOT}/lib/libc10.so")
target_link_options(pipewright_torch INTERFACE "LINKER:-rpath,${PIPEWRIGHT_TORCH_ROOT}/lib" "LINKER:--allow-shlib-undefined")
