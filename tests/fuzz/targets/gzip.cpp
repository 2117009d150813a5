// SPDX-License-Identifier: Apache-2.0
// Gzipped files. What one unpacks to, packed by another program, unpacks to the same; and zlib
// agrees on what the first member holds.
#include "datasets/archives/gzip.h"

#include "tests/fuzz/packing.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::uint64_t kLimit = 1 << 17;

std::string read(std::string_view bytes) {
  static MemoryFile file;
  std::string content = read_gzip(file.holding(bytes), kLimit);
  require(content.size() <= kLimit, concat("unpacks to ", content.size(), " bytes"));
  require(
      reread([&] { return read_gzip(file.holding(packed_as_gzip(content)), kLimit); }) == content,
      "packed again, it unpacks to something else");
  constexpr std::size_t kHeader = 10;
  if (bytes.size() > kHeader && bytes[3] == 0)  // a header without a name
    require(content.starts_with(inflated(bytes.substr(kHeader)).content),
            "zlib unpacks it to something else");
  return content;
}

std::size_t most_memory(std::string_view bytes) {
  return (std::size_t{4} << 20) + 64 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .mend = mend_gzip, .rounds = 3000};

}  // namespace pipewright::fuzz
