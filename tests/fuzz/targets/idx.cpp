// SPDX-License-Identifier: Apache-2.0
// The idx files of MNIST and its successors. A second reading of the format says which are files of
// the dimensions that are expected; just these are taken, and their elements are the rest.
#include "datasets/images/idx.h"

#include <array>
#include <optional>
#include <vector>

#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

/// Of labels and of images; small, but for two that the whole numbers of a header can name.
const std::vector<std::vector<std::int64_t>> kExpected{{5}, {2, 3, 4}, {0}, {1, 28, 28}};

bool is_file_of(std::string_view bytes, const std::vector<std::int64_t>& dimensions) {
  std::string header{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  std::int64_t elements = 1;
  for (const std::int64_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(size >> shift);
    elements *= size;
  }
  return bytes.starts_with(header) &&
         bytes.size() == header.size() + static_cast<std::size_t>(elements);
}

std::string read(std::string_view bytes) {
  std::optional<Error> refusal;
  for (const std::vector<std::int64_t>& dimensions : kExpected) {
    const bool right = is_file_of(bytes, dimensions);
    try {
      const std::string_view elements = idx_elements(bytes, dimensions, "fuzz-idx");
      require(right, "a file is taken that is none");
      require(elements.data() + elements.size() == bytes.data() + bytes.size() &&
                  bytes.size() - elements.size() == 4 + 4 * dimensions.size(),
              "the elements are not what follows the header");
      return concat(dimensions.size(), ' ', std::string(elements));
    } catch (const Error& error) {
      require(!right, concat("a file is refused: ", error.what()));
      if (!refusal) refusal = error;
    }
  }
  throw *refusal;
}

std::size_t most_memory(std::string_view bytes) {
  return (1 << 14) + 4 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read, .most_memory = most_memory, .rounds = 5000};

}  // namespace pipewright::fuzz
