// SPDX-License-Identifier: Apache-2.0
/// The folder of the sources, for tests that read golden files, the experiments that come with the
/// program, or the shared data beside the checkout. Only one unit contains the path, so that the
/// others compile to the same bytes in every checkout.
#pragma once

#include <filesystem>

namespace pipewright {

/// The root of the checkout that the tests were built from.
std::filesystem::path source_dir();

}  // namespace pipewright
