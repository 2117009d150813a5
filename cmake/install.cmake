# SPDX-License-Identifier: Apache-2.0
# Rules of `cmake --install`: installs the program, and the headers and library with which schemes, models and other
# parts outside this repository are compiled. The prefix may be moved afterwards: files in it find each other by relative
# paths. LibTorch stays where it was found at build time, unless `cmake --install build --component libtorch` copies it;
# the other libraries are the system's (docs/manual/reference/install.md). A plugin links none of them.
#
#   bin/pipewright                    the program, which starts without LibTorch
#   lib/pipewright/with_libtorch      the program that it becomes when a command needs LibTorch
#   lib/libpipewright.so              the rooms without tensors; lib/pipewright/no_cuda as in the build
#   lib/pipewright                    modules loaded on demand: MPI, CUDA kernels and graphs, if they were built
#   lib/pipewright/libtorch           LibTorch's libraries for CPUs, its headers and licence: the component libtorch
#   lib/cmake/Pipewright              find_package(Pipewright): the targets Pipewright::pipewright, for schemes, and
#                                     Pipewright::laboratory, for parts with tensors, with LibTorch's headers
#   include/pipewright/core           headers that a part may include, with the paths of this repository
#   share/pipewright, share/doc       experiments and the importer of PyTorch modules; README, manual and drawings
#   share/man, share/bash-completion, share/zsh   what the program says of itself, for man and for TAB
#
# In a wheel all of this lies in pipewright_lab/_lib/torch-2.11, the prefix of the programs that were compiled for that minor
# version of torch; they find the torch that lies beside pipewright_lab, and neither documentation nor pages are in it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(PIPEWRIGHT_WHEEL)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _minor ${PIPEWRIGHT_TORCH_VERSION})
  foreach(_kind BINDIR LIBDIR INCLUDEDIR DATADIR)
    set(CMAKE_INSTALL_${_kind} _lib/torch-${_minor}/${CMAKE_INSTALL_${_kind}})
  endforeach()
endif()
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Pipewright)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/pipewright)
set(_no_cuda ${CMAKE_INSTALL_LIBDIR}/pipewright/no_cuda)
set(_libtorch ${CMAKE_INSTALL_LIBDIR}/pipewright/libtorch)

# Installs a program or module, which then looks for libraries along the run path, and in the build folder along that of the
# build. CMake's own way to change one ends the build's with ":", where the loader takes the empty entry behind it for the
# current directory. The new path must not be longer than the old one, so the build's begins with its folder spelled long.
function(pipewright_install_with_run_path target folder run_path)
  list(JOIN run_path ":" installed)
  set(room "${PROJECT_BINARY_DIR}")
  string(LENGTH "${installed}" needed)
  string(LENGTH "${room}" length)
  while(length LESS needed)
    string(APPEND room "/.")
    math(EXPR length "${length} + 2")
  endwhile()
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${room}")
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION ${folder})
  install(CODE "set(_file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_FILE_NAME:${target}>\")
    file(RPATH_SET FILE \"\${_file}\" NEW_RPATH [[${installed}]])
    if(CMAKE_INSTALL_DO_STRIP)
      execute_process(COMMAND \"${CMAKE_STRIP}\" \"\${_file}\")
    endif()")
endfunction()

# Installs a program into a folder. The empty CUDA libraries come before LibTorch's folder, as in cmake/no_cuda.cmake.
function(pipewright_install_program target folder)
  file(RELATIVE_PATH to_libraries /${folder} /${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH to_no_cuda /${folder} /${_no_cuda})
  file(RELATIVE_PATH to_libtorch /${folder} /${_libtorch}/lib)
  set(run_path "$ORIGIN/${to_no_cuda};$ORIGIN/${to_libraries};$ORIGIN/${to_libtorch};${PIPEWRIGHT_TORCH_ROOT}/lib")
  if(PIPEWRIGHT_WHEEL)
    file(RELATIVE_PATH to_torch /pipewright_lab/${folder} /torch/lib)
    set(run_path "$ORIGIN/${to_libraries};$ORIGIN/${to_torch}")
  endif()
  pipewright_install_with_run_path(${target} ${folder} "${run_path}")
  set_target_properties(${target} PROPERTIES pipewright_folder "${folder}" pipewright_run_path "${run_path}")
  set_property(GLOBAL APPEND PROPERTY pipewright_installed_programs ${target})
endfunction()
pipewright_install_program(pipewright ${CMAKE_INSTALL_BINDIR})
if(TARGET pipewright_with_libtorch)
  pipewright_install_program(pipewright_with_libtorch ${CMAKE_INSTALL_LIBDIR}/pipewright/with_libtorch)
endif()
if(PIPEWRIGHT_NO_CUDA)
  install(TARGETS ${PIPEWRIGHT_NO_CUDA} LIBRARY DESTINATION ${_no_cuda})
endif()

foreach(_module pipewright_mpi pipewright_cuda pipewright_graphs)
  if(TARGET ${_module})
    pipewright_install_with_run_path(${_module} ${CMAKE_INSTALL_LIBDIR}/pipewright "$ORIGIN/..")
  endif()
endforeach()

set_target_properties(pipewright_core PROPERTIES EXPORT_NAME pipewright)
target_compile_features(pipewright_core INTERFACE cxx_std_20)
# The program brings LibTorch and the laboratory's code: a plugin is not linked with them.
add_library(pipewright_laboratory_headers INTERFACE)
set_target_properties(pipewright_laboratory_headers PROPERTIES EXPORT_NAME laboratory)
target_link_libraries(pipewright_laboratory_headers INTERFACE pipewright_core)
install(TARGETS pipewright_core pipewright_laboratory_headers EXPORT Pipewright INCLUDES DESTINATION ${_headers})
install(EXPORT Pipewright NAMESPACE Pipewright:: FILE PipewrightTargets.cmake DESTINATION ${_package})
set(PIPEWRIGHT_TORCH_OF_PLUGINS ${PIPEWRIGHT_TORCH_ROOT})
if(PIPEWRIGHT_WHEEL)
  file(RELATIVE_PATH _to_torch /pipewright_lab/${_package} /torch)
  set(PIPEWRIGHT_TORCH_OF_PLUGINS "\${CMAKE_CURRENT_LIST_DIR}/${_to_torch}")
endif()
configure_package_config_file(cmake/PipewrightConfig.cmake.in ${PROJECT_BINARY_DIR}/PipewrightConfig.cmake
  INSTALL_DESTINATION ${_package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
install(FILES ${PROJECT_BINARY_DIR}/PipewrightConfig.cmake DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake DESTINATION ${_package})
foreach(_room base system config schedule tensors tensor_files nn optim stage)  # without headers that are private to their room
  install(DIRECTORY core/${_room} DESTINATION ${_headers}/core FILES_MATCHING PATTERN "*.h"
    PATTERN "yaml_*" EXCLUDE PATTERN "*_text.h" EXCLUDE PATTERN "plain_scalar.h" EXCLUDE)
endforeach()

foreach(_header codecs/codec codecs/frame probes/measures probes/probe runtime/observer runtime/program)
  get_filename_component(_room ${_header} DIRECTORY)
  install(FILES core/${_header}.h DESTINATION ${_headers}/core/${_room})
endforeach()

install(DIRECTORY experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright)
if(NOT PIPEWRIGHT_WHEEL)
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
  install(FILES README.md LICENSE CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
endif()
install(PROGRAMS tools/import_torch.py tools/to_pytorch.py tools/convert_weights.py DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright/tools)
install(DIRECTORY tools/importing DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright/tools FILES_MATCHING PATTERN "*.py")
install(FILES models/graph/operators.inc core/nn/meta/filled_kernels.inc DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright/tools/importing)

# The page for man and the completions are the program's own words.
if(TARGET pipewright_with_libtorch AND NOT PIPEWRIGHT_WHEEL)
  set(_words ${PROJECT_BINARY_DIR}/words)
  add_custom_command(OUTPUT ${_words}/pipewright.1 ${_words}/pipewright ${_words}/_pipewright
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/man_page $<TARGET_FILE:pipewright> ${_words}/pipewright.1
    COMMAND $<TARGET_FILE:pipewright> completion bash > ${_words}/pipewright
    COMMAND $<TARGET_FILE:pipewright> completion zsh > ${_words}/_pipewright
    DEPENDS pipewright ${PROJECT_SOURCE_DIR}/tools/man_page VERBATIM)
  add_custom_target(pipewright_words ALL DEPENDS ${_words}/pipewright.1)
  add_dependencies(program pipewright_words)
  install(FILES ${_words}/pipewright.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES ${_words}/pipewright DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
  install(FILES ${_words}/_pipewright DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions OPTIONAL)
endif()

# `cmake --install build --component libtorch` copies LibTorch's half for CPUs, so that the installation needs nothing of
# the user who has built it; the programs then look nowhere else for libraries.
if(NOT PIPEWRIGHT_WITH_CUDA)
  file(GLOB _libraries ${PIPEWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so ${PIPEWRIGHT_TORCH_ROOT}/lib/libc10.so
    ${PIPEWRIGHT_TORCH_ROOT}/lib/libgomp*)
  file(GLOB _licences ${PIPEWRIGHT_TORCH_ROOT}/../torch-*.dist-info/licenses/*)
  install(FILES ${_libraries} DESTINATION ${_libtorch}/lib COMPONENT libtorch EXCLUDE_FROM_ALL)
  install(FILES ${_licences} DESTINATION ${_libtorch} COMPONENT libtorch EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PIPEWRIGHT_TORCH_ROOT}/include DESTINATION ${_libtorch} COMPONENT libtorch EXCLUDE_FROM_ALL)
  get_property(_programs GLOBAL PROPERTY pipewright_installed_programs)
  foreach(_program ${_programs})
    get_target_property(_rpath ${_program} pipewright_run_path)
    list(JOIN _rpath ":" _old)
    string(REPLACE ":${PIPEWRIGHT_TORCH_ROOT}/lib" "" _new "${_old}")
    get_property(_folder TARGET ${_program} PROPERTY pipewright_folder)
    install(CODE "set(_file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_folder}/pipewright\")
      if(EXISTS \"\${_file}\")
        file(RPATH_CHANGE FILE \"\${_file}\" OLD_RPATH [[${_old}]] NEW_RPATH [[${_new}]])
      endif()" COMPONENT libtorch EXCLUDE_FROM_ALL)
  endforeach()
endif()
