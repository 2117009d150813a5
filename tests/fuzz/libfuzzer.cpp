// SPDX-License-Identifier: Apache-2.0
// How libFuzzer changes inputs: in its own ways, and then checksums are made right most of the
// time.
#include <cstring>

#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using pipewright::fuzz::kTarget;
  size = LLVMFuzzerMutate(data, size, most);
  if (kTarget.mend == nullptr || seed % 4 == 0) return size;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  kTarget.mend(bytes);
  if (bytes.size() > most) return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
