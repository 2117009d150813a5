// SPDX-License-Identifier: Apache-2.0
/// Tar archives for tests, built member by member.
#pragma once

#include <cstdio>
#include <string>

namespace pipewright::fixtures {

/// Writes the checksum into a header.
inline void sign_tar_header(std::string& header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, text, 7);
}

/// One ustar member with its content, padded to whole blocks.
inline std::string tar_member(const std::string& name, const std::string& content,
                              char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size);
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(263, 2, "00");
  sign_tar_header(header);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tar_end() {
  return std::string(10240, '\0');
}

}  // namespace pipewright::fixtures
