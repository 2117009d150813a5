// SPDX-License-Identifier: Apache-2.0
/// Counts the memory that LibTorch's allocators hand out, to the byte, for profiles and for tests
/// of memory predictions.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace pipewright {

/// While it lives, counts the memory of tensors on `device` that this thread, and autograd's
/// threads on its behalf, allocate and free. Memory allocated before must not be freed meanwhile.
/// On a CUDA device it counts the blocks of the caching allocator, on the meta device the bytes
/// that tensors made by this thread's operators would need. While counts are nested, only the inner
/// one counts.
class MemoryCount {
 public:
  explicit MemoryCount(at::Device device);
  ~MemoryCount();
  MemoryCount(const MemoryCount&) = delete;
  MemoryCount& operator=(const MemoryCount&) = delete;

  /// Bytes allocated and not freed since the count began.
  std::int64_t live() const;
  /// Highest live() since the count began, or since forget_peak().
  std::int64_t peak() const;
  void forget_peak();

 private:
  struct Counted;
  struct OfAllocator;
  struct OfOperators;
  std::unique_ptr<Counted> counted_;
};

}  // namespace pipewright
