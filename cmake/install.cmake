# What `cmake --install` leaves under a prefix: the program, and what a scheme outside this repository is
# compiled with. The prefix may be moved afterwards: inside it everything is found relative to itself,
# LibTorch is where it was found when Pipewright was built, and the other libraries are the system's:
# README, "What it is built on", says which. A plugin links none of them.
#
#   bin/pipewright                    the program
#   lib/libpipewright.so              the rooms without tensors; lib/pipewright/no_cuda as in the build
#   lib/pipewright                    what is loaded when asked for: MPI, CUDA kernels, where they were built
#   lib/cmake/Pipewright              find_package(Pipewright): the target Pipewright::pipewright
#   include/pipewright/core           what a scheme may include, under the names it has here
#   share/pipewright, share/doc       experiments; README and drawings
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/Pipewright)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/pipewright)
set(_no_cuda ${CMAKE_INSTALL_LIBDIR}/pipewright/no_cuda)
file(RELATIVE_PATH _to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH _to_no_cuda /${CMAKE_INSTALL_BINDIR} /${_no_cuda})

# The empty CUDA libraries before LibTorch's folder, as in cmake/no_cuda.cmake.
set_target_properties(pipewright PROPERTIES
  INSTALL_RPATH "$ORIGIN/${_to_no_cuda};$ORIGIN/${_to_libraries};${PIPEWRIGHT_TORCH_ROOT}/lib")
install(TARGETS pipewright)
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
install(TARGETS pipewright_core EXPORT Pipewright INCLUDES DESTINATION ${_headers})
install(EXPORT Pipewright NAMESPACE Pipewright:: FILE PipewrightConfig.cmake DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PipewrightConfigVersion.cmake DESTINATION ${_package})
foreach(_room base system config schedule)  # without what is only for the .cpp files beside it
  install(DIRECTORY core/${_room} DESTINATION ${_headers}/core FILES_MATCHING PATTERN "*.h"
    PATTERN "yaml_*" EXCLUDE PATTERN "*_text.h" EXCLUDE PATTERN "plain_scalar.h" EXCLUDE)
endforeach()

install(DIRECTORY experiments DESTINATION ${CMAKE_INSTALL_DATADIR}/pipewright)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
install(FILES README.md LICENSE CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/pipewright)
