# SPDX-License-Identifier: Apache-2.0
# The Debian package that `cpack --config build/CPackConfig.cmake` makes: the installation with a copy of LibTorch's half
# for CPUs, in /usr. Its dependencies are the packages of the libraries with which the program was linked.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pipewright)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "laboratory for pipeline-parallel training")
set(CPACK_PACKAGE_DESCRIPTION "Trains the same model under many pipeline-parallel schemes and measures what stale,
stashed and predicted weights do to it. Comes with LibTorch for CPUs.")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
if(PIPEWRIGHT_CANDIDATE)
  string(APPEND CPACK_PACKAGE_VERSION "~${PIPEWRIGHT_CANDIDATE}")  # before the version itself, as dpkg sorts
endif()
set(CPACK_PACKAGE_CONTACT "The Pipewright authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS
  ${PROJECT_BINARY_DIR} Pipewright Unspecified / ${PROJECT_BINARY_DIR} Pipewright libtorch /)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/no_cuda ${PIPEWRIGHT_TORCH_ROOT}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openmpi-bin, gnuplot-nox, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, make")  # to compile plugins
include(CPack)
