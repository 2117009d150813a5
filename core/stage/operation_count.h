/// Floating-point operations of a forward, from shapes alone.
#pragma once

#include <cstdint>
#include <memory>

namespace pipewright {

/// While it lives, counts the operations of matrix products, convolutions, recurrences and
/// attention that this thread's layers compute on the meta device; a multiply-add is two. What is
/// done element by element is left out, as in the literature.
class OperationCount {
 public:
  OperationCount();
  ~OperationCount();
  OperationCount(const OperationCount&) = delete;
  OperationCount& operator=(const OperationCount&) = delete;

  double flops() const;

 private:
  double* before_;
  double flops_ = 0;
  std::uint64_t callback_;
};

/// For a layer whose forward runs no operator of LibTorch's on the meta device.
void count_multiply_adds(double count);

}  // namespace pipewright
