// SPDX-License-Identifier: Apache-2.0
/// Checksums that name the exact content of a file, as `md5sum` and `sha256sum` print them. SHA-256
/// (FIPS 180-4) is for anything of our own. MD5 (RFC 1321) finds damage, not forgery: authors of
/// older data sets publish no other checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pipewright {

/// The checksum of bytes that come in pieces.
class Checksum {
 public:
  enum class Kind : std::uint8_t { Md5, Sha256 };

  /// Throws Error{Data} where the machine's OpenSSL does not offer this kind.
  explicit Checksum(Kind kind);
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void add(std::string_view bytes);
  /// Lower-case hexadecimal digits: 32 of MD5, 64 of SHA-256. Nothing can be added afterwards.
  std::string digits();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string md5(std::string_view bytes);
std::string sha256(std::string_view bytes);

}  // namespace pipewright
