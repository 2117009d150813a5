/// SHA-256 (FIPS 180-4), to name the exact content of a file as `sha256sum` does.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace pipewright
