# SPDX-License-Identifier: Apache-2.0
# Rules of `cmake --install`: installs the program, and the headers and library with which schemes, models and other
# parts outside this repository are compiled. The prefix may be moved afterwards: files in it find each other by relative
# paths. LibTorch stays where it was found at build time, and the other libraries are the system's
# (docs/manual/reference/install.md). A plugin links none of them.
#
#   bin/pipewright                    the program, which starts without LibTorch
#   lib/pipewright/with_libtorch      the program that it becomes when a command needs LibTorch
#   lib/libpipewright.so              the rooms without tensors; lib/pipewright/no_cuda as in the build
#   lib/pipewright                    modules loaded on demand: MPI and CUDA kernels, if they were built
#   lib/cmake/Pipewright              find_package(Pipewright): the targets Pipewright::pipewright, for schemes, and
#                                     Pipewright::laboratory, for parts with tensors, with LibTorch's headers
#   include/pipewright/core           headers that a part may include, with the paths of this repository
#   share/pipewright, share/doc       experiments; README, manual and drawings
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Pipewright)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/pipewright)
set(_no_cuda ${CMAKE_INSTALL_LIBDIR}/pipewright/no_cuda)

# Installs a program into a folder. The empty CUDA libraries come before LibTorch's folder, as in cmake/no_cuda.cmake.
function(pipewright_install_program target folder)
  file(RELATIVE_PATH to_libraries /${folder} /${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH to_no_cuda /${folder} /${_no_cuda})
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "$ORIGIN/${to_no_cuda};$ORIGIN/${to_libraries};${PIPEWRIGHT_TORCH_ROOT}/lib")
  install(TARGETS ${target} RUNTIME DESTINATION ${folder})
endfunction()
pipewright_install_program(pipewright ${CMAKE_INSTALL_BINDIR})
if(TARGET pipewright_with_libtorch)
  pipewright_install_program(pipewright_with_libtorch ${CMAKE_INSTALL_LIBDIR}/pipewright/with_libtorch)
endif()
if(PIPEWRIGHT_NO_CUDA)
  install(TARGETS ${PIPEWRIGHT_NO_CUDA} LIBRARY DESTINATION ${_no_cuda})
endif()

foreach(_module pipewright_mpi pipewright_cuda)
  if(TARGET ${_module})
    set_target_properties(${_module} PROPERTIES INSTALL_RPATH "$ORIGIN/..")
    install(TARGETS ${_module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/pipewright)
  endif()
endforeach()

set_target_properties(pipewright_core PROPERTIES EXPORT_NAME pipewright)
target_compile_features(pipewright_core INTERFACE cxx_std_20)
# The program brings LibTorch and the laboratory's code: a plugin is not linked with them.
add_library(pipewright_laboratory_headers INTERFACE)
set_target_properties(pipewright_laboratory_headers PROPERTIES EXPORT_NAME laboratory)
target_link_libraries(pipewright_laboratory_headers INTERFACE pipewright_core)
target_include_directories(pipewright_laboratory_headers SYSTEM INTERFACE
  "$<INSTALL_INTERFACE:${PIPEWRIGHT_TORCH_ROOT}/include>"
  "$<INSTALL_INTERFACE:${PIPEWRIGHT_TORCH_ROOT}/include/torch/csrc/api/include>")
install(TARGETS pipewright_core pipewright_laboratory_headers EXPORT Pipewright INCLUDES DESTINATION ${_headers})
install(EXPORT Pipewright NAMESPACE Pipewright:: FILE PipewrightConfig.cmake DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake DESTINATION ${_package})
foreach(_room base system config schedule stage)  # without headers that are private to their room
  install(DIRECTORY core/${_room} DESTINATION ${_headers}/core FILES_MATCHING PATTERN "*.h"
    PATTERN "yaml_*" EXCLUDE PATTERN "*_text.h" EXCLUDE PATTERN "plain_scalar.h" EXCLUDE)
endforeach()

foreach(_header codecs/codec codecs/frame probes/measures probes/probe runtime/observer runtime/program)
  get_filename_component(_room ${_header} DIRECTORY)
  install(FILES core/${_header}.h DESTINATION ${_headers}/core/${_room})
endforeach()

install(DIRECTORY experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
install(FILES README.md LICENSE CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
