# SPDX-License-Identifier: Apache-2.0
# Keeps CUDA libraries out of a process without CUDA.
#
# The libtorch_cpu.so of a wheel with CUDA needs libcudart and libcupti for a profiler that we never
# start. The loader loads only one library of a name, so an empty one of ours, which comes first,
# replaces each: every function in it fails with cudaErrorNoDevice (100).
find_program(PIPEWRIGHT_NM nm REQUIRED)
execute_process(COMMAND ${PIPEWRIGHT_NM} -D --undefined-only "${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so"
                OUTPUT_VARIABLE _undefined ERROR_QUIET RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "  LibTorch: ${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so is not a shared library; it may be damaged")
endif()

string(REGEX MATCHALL "[A-Za-z0-9_]+@lib(cudart|cupti)[-0-9a-f]*\\.so\\.[0-9]+" _functions "${_undefined}")
set(_libraries ${_functions})
list(TRANSFORM _libraries REPLACE ".*@" "")
list(REMOVE_DUPLICATES _libraries)
set(_folder "${PROJECT_BINARY_DIR}/no_cuda")
foreach(_library ${_libraries})
  set(_names ${_functions})
  list(FILTER _names INCLUDE REGEX "@${_library}$")
  list(TRANSFORM _names REPLACE "@.*" "")
  set(_source "")
  foreach(_name ${_names})
    if(_name MATCHES "^cudaGetError(String|Name)$")
      string(APPEND _source "extern \"C\" const char* ${_name}() { return \"built without CUDA\"; }\n")
    else()
      string(APPEND _source "extern \"C\" int ${_name}() { return 100; }\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${_folder}/${_library}.cpp" CONTENT "${_source}" @ONLY)
  file(CONFIGURE OUTPUT "${_folder}/${_library}.map" CONTENT "${_library} { *; };\n" @ONLY)
  string(MAKE_C_IDENTIFIER "no_${_library}" _target)
  add_library(${_target} SHARED "${_folder}/${_library}.cpp")
  set_target_properties(${_target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${_folder}"
    PREFIX "" OUTPUT_NAME "${_library}" SUFFIX "" NO_SONAME ON)
  target_link_options(${_target} PRIVATE
    "LINKER:-soname,${_library}" "LINKER:--version-script,${_folder}/${_library}.map")
  target_link_libraries(pipewright_torch INTERFACE ${_target})
  target_link_options(pipewright_torch INTERFACE "LINKER:--no-as-needed")
  list(APPEND PIPEWRIGHT_NO_CUDA ${_target})
endforeach()
