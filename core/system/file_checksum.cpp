// SPDX-License-Identifier: Apache-2.0
#include "core/system/file_checksum.h"

#include "core/system/input_file.h"

namespace pipewright {

std::string file_checksum(const std::filesystem::path& path, Checksum::Kind kind) {
  constexpr std::size_t kPiece = 1 << 20;
  Checksum checksum(kind);
  InputFile file(path);
  std::string piece(kPiece, '\0');
  for (std::uint64_t got = kPiece; got == kPiece;) {
    got = file.read(piece.data(), kPiece);
    checksum.add(std::string_view(piece).substr(0, got));
  }
  return checksum.digits();
}

}  // namespace pipewright
