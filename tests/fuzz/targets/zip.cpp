// SPDX-License-Identifier: Apache-2.0
// Zip archives. The files that are read, packed by another program, are read as the same ones.
#include "tests/fuzz/archive_tree.h"
#include "tests/fuzz/packing.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

std::string read(std::string_view bytes) {
  const auto all = tree_in(bytes), tree = packable(all);
  if (tree.empty()) return text_of(all);  // libarchive takes no archive without a file
  require(reread([&] { return tree_in(packed_as_zip(tree)); }) == tree,
          "packed again, there are other files");
  return text_of(all);
}

std::size_t most_memory(std::string_view bytes) {
  return 2 * kTreeMemory + 64 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .mend = mend_zip, .rounds = 3000};

}  // namespace pipewright::fuzz
