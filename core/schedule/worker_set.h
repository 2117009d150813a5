/// A set of workers, walked in ascending order while it grows.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/base/as_size.h"

namespace pipewright {

class WorkerSet {
 public:
  explicit WorkerSet(int workers) : words_(as_size(workers) / 64 + 1, 0) {}

  void insert(int worker) { words_[as_size(worker) / 64] |= bit(worker); }
  void clear() { words_.assign(words_.size(), 0); }
  /// The first one from `worker` on; −1: none.
  int from(int worker) const {
    std::size_t at = as_size(worker) / 64;
    if (at >= words_.size()) return -1;
    std::uint64_t word = words_[at] & ~(bit(worker) - 1);
    while (word == 0) {
      if (++at == words_.size()) return -1;
      word = words_[at];
    }
    return static_cast<int>(at) * 64 + std::countr_zero(word);
  }

 private:
  static std::uint64_t bit(int worker) { return std::uint64_t{1} << (as_size(worker) % 64); }

  std::vector<std::uint64_t> words_;
};

}  // namespace pipewright
