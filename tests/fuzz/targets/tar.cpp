// SPDX-License-Identifier: Apache-2.0
// Tar archives, plain and gzipped. The files that are read, packed by another program, are read as
// the same ones.
#include "tests/fuzz/archive_tree.h"
#include "tests/fuzz/packing.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string read(std::string_view bytes) {
  const auto all = tree_in(bytes), tree = packable(all);
  const std::string tar = packed_as_tar(tree);
  require(reread([&] { return tree_in(tar); }) == tree, "packed again, there are other files");
  require(reread([&] { return tree_in(packed_as_gzip(tar)); }) == tree,
          "packed and gzipped, there are other files");
  return text_of(all);
}

void mend(std::string& bytes) {
  if (bytes.starts_with("\x1f\x8b"))
    mend_gzip(bytes);
  else
    mend_tar(bytes);
}

/// Some more for what is packed again.
std::size_t most_memory(std::string_view bytes) {
  return 2 * kTreeMemory + 64 * bytes.size();
}

}  // namespace

const Target kTarget{
    .read = read, .most_memory = most_memory, .mend = mend, .most_bytes = 1 << 14, .rounds = 2500};

}  // namespace pipewright::fuzz
