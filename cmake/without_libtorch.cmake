# SPDX-License-Identifier: Apache-2.0
# The program `pipewright`, which starts without LibTorch, and `with_libtorch/pipewright`, which it becomes when a
# command needs LibTorch: see tools/start/libtorch.h. Both consist of the same objects.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)

add_executable(pipewright_with_libtorch)
set_target_properties(pipewright_with_libtorch PROPERTIES
  OUTPUT_NAME pipewright RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/with_libtorch)
target_link_libraries(pipewright_with_libtorch PRIVATE pipewright_program pipewright_tools pipewright_laboratory
  pipewright_schemes)
pipewright_export_to_plugins(pipewright_with_libtorch)

set(_definitions ${PROJECT_BINARY_DIR}/without_libtorch.cpp)
add_custom_command(OUTPUT ${_definitions}
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/without_libtorch.py $<TARGET_FILE:pipewright_with_libtorch>
    ${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so ${PIPEWRIGHT_TORCH_ROOT}/lib/libc10.so > ${_definitions}.part
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${_definitions}.part ${_definitions}
  DEPENDS pipewright_with_libtorch ${PROJECT_SOURCE_DIR}/cmake/without_libtorch.py VERBATIM)
set(_libtorch_of_program ${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so)
if(PIPEWRIGHT_WHEEL)
  set(_libtorch_of_program ../../../../torch/lib/libtorch_cpu.so)  # from pipewright_lab/_lib/torch-2.11/bin
endif()
set_source_files_properties(tools/start/without_libtorch.cpp PROPERTIES COMPILE_DEFINITIONS
  "PIPEWRIGHT_LIBTORCH=\"${_libtorch_of_program}\"")
add_executable(pipewright tools/start/without_libtorch.cpp ${_definitions} ${program_objects})
target_link_libraries(pipewright PRIVATE pipewright_libraries Boost::program_options)
