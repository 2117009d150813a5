// SPDX-License-Identifier: Apache-2.0
/// Archives as other programs pack them, without the code that is fuzzed; and their checksums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace pipewright::fuzz {

std::uint32_t crc32_of(std::string_view bytes);

/// Content by name. Plain files in the folder "packed".
std::string packed_as_tar(const std::map<std::string, std::string>& files);
std::string packed_as_zip(const std::map<std::string, std::string>& files);
std::string packed_as_gzip(std::string_view content);

/// Make checksums and sizes right of what can be unpacked, and leave the rest.
void mend_tar(std::string& bytes);
void mend_zip(std::string& bytes);
void mend_gzip(std::string& bytes);

/// What raw deflate data stand for, as far as they are whole, and at most 256 KiB; how many bytes
/// of them were read.
struct Inflated {
  std::string content;
  std::size_t used = 0;
  bool ended = false;
};
Inflated inflated(std::string_view deflated);

}  // namespace pipewright::fuzz
