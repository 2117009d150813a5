/// MD5 (RFC 1321), because authors of older data sets publish no other checksum. It finds damage,
/// not forgery: for anything of our own, sha256.h.
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// 32 lower-case hexadecimal digits, as `md5sum` prints them.
std::string md5(std::string_view bytes);

}  // namespace pipewright
