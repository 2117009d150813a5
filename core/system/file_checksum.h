// SPDX-License-Identifier: Apache-2.0
/// The checksum of a file's content.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/checksum.h"

namespace pipewright {

/// Lower-case hexadecimal digits. Reads the file in pieces. Throws Error{Data}.
std::string file_checksum(const std::filesystem::path& path, Checksum::Kind kind);

}  // namespace pipewright
