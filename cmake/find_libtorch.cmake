# SPDX-License-Identifier: Apache-2.0
# Finds a usable LibTorch. Sets PIPEWRIGHT_TORCH_ROOT and PIPEWRIGHT_TORCH_VERSION, or fails.
# It is also a script, which tools/setup runs: cmake -P cmake/find_libtorch.cmake
#
# It tries these in order, the first two only if given (as cache or environment variables):
#   Torch_DIR           a LibTorch, a site-packages/torch, or the folder of its TorchConfig.cmake
#   PIPEWRIGHT_PYTHON   a Python that has torch
#   python3 on the PATH
#   the private environment that tools/setup makes
# A given one must be usable; of the others the first usable one is taken.
cmake_minimum_required(VERSION 3.25)

foreach(_given Torch_DIR PIPEWRIGHT_PYTHON)
  if(NOT ${_given})
    set(${_given} "$ENV{${_given}}")
  endif()
endforeach()

# The folder of a Python's torch, without importing it.
function(pipewright_python_torch python out)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT folder)
    set(folder "")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# Why a folder is not a usable LibTorch (empty: it is), and its version.
function(pipewright_examine_torch root version_out wrong_out)
  set(version "")
  set(wrong "")
  foreach(file lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h)
    if(NOT wrong AND NOT EXISTS "${root}/${file}")
      set(wrong "has no readable ${file}")
    endif()
  endforeach()
  if(NOT wrong)
    foreach(header include/torch/csrc/api/include/torch/version.h include/torch/headeronly/version.h)
      if(EXISTS "${root}/${header}")
        file(STRINGS "${root}/${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
        string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
        list(JOIN numbers "." version)
      endif()
    endforeach()
    file(STRINGS "${root}/lib/libc10.so" new_abi LIMIT_COUNT 1 REGEX "_ZN3c105ErrorC[12].*__cxx11")
    if(version VERSION_LESS 2.6)
      set(wrong "is version ${version}, 2.6 or later is needed")
    elseif(NOT new_abi)
      set(wrong "is damaged or made for the old C++ ABI of GCC 4")
    endif()
  endif()
  set(${version_out} "${version}" PARENT_SCOPE)
  set(${wrong_out} "${wrong}" PARENT_SCOPE)
endfunction()

set(_candidates)
if(Torch_DIR)
  get_filename_component(_above "${Torch_DIR}/../../.." ABSOLUTE)  # of share/cmake/Torch
  if(EXISTS "${Torch_DIR}/TorchConfig.cmake")
    set(_candidates "${_above}")
  else()
    set(_candidates "${Torch_DIR}")
  endif()
elseif(PIPEWRIGHT_PYTHON)
  pipewright_python_torch("${PIPEWRIGHT_PYTHON}" _candidates)
  if(NOT _candidates)
    message(FATAL_ERROR "  LibTorch not found: ${PIPEWRIGHT_PYTHON} (PIPEWRIGHT_PYTHON) has no torch")
  endif()
else()
  pipewright_python_torch(python3 _candidates)
  set(_cache "$ENV{XDG_CACHE_HOME}")
  if(NOT _cache)
    set(_cache "$ENV{HOME}/.cache")
  endif()
  file(GLOB _private "${_cache}/pipewright/torch-2.11.0-cpu/lib/python3*/site-packages/torch")
  list(APPEND _candidates ${_private})
endif()

set(PIPEWRIGHT_TORCH_ROOT "")
set(_reasons "")
foreach(_root ${_candidates})
  if(NOT PIPEWRIGHT_TORCH_ROOT)
    pipewright_examine_torch("${_root}" PIPEWRIGHT_TORCH_VERSION _wrong)
    if(_wrong)
      string(APPEND _reasons ": ${_root} ${_wrong}")
    else()
      set(PIPEWRIGHT_TORCH_ROOT "${_root}")
    endif()
  endif()
endforeach()
if(NOT PIPEWRIGHT_TORCH_ROOT)
  message(FATAL_ERROR "  LibTorch not found${_reasons}; run tools/setup, or give Torch_DIR or PIPEWRIGHT_PYTHON")
endif()
message(STATUS "LibTorch ${PIPEWRIGHT_TORCH_VERSION}: ${PIPEWRIGHT_TORCH_ROOT}")
