/// What LibTorch's allocators give out, counted to the byte: for profiles and for tests of what
/// they predict.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace pipewright {

/// While it lives, counts the memory of tensors on `device` that this thread takes and frees, and
/// autograd's threads for it. What was taken before must not be freed meanwhile. On a CUDA device
/// bytes are those of its caching allocator's blocks; on the meta device those that the tensors of
/// this thread's operators would take. A count within a count is alone.
class MemoryCount {
 public:
  explicit MemoryCount(at::Device device);
  ~MemoryCount();
  MemoryCount(const MemoryCount&) = delete;
  MemoryCount& operator=(const MemoryCount&) = delete;

  /// Taken and not freed since the count began.
  std::int64_t live() const;
  /// The most of it since then, or since forget_peak().
  std::int64_t peak() const;
  void forget_peak();

 private:
  struct Counted;
  struct OfAllocator;
  struct OfOperators;
  std::unique_ptr<Counted> counted_;
};

}  // namespace pipewright
