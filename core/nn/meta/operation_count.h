// SPDX-License-Identifier: Apache-2.0
/// Counts the floating-point operations and the operators of a forward from shapes alone.
#pragma once

#include <cstdint>
#include <memory>

namespace pipewright {

/// While it lives, counts the operations of matrix products, convolutions, recurrent layers and
/// attention that this thread runs on the meta device. A multiply-add counts as two; elementwise
/// operations are not counted, as in the literature. A thread has at most one.
class OperationCount {
 public:
  OperationCount();
  ~OperationCount();
  OperationCount(const OperationCount&) = delete;
  OperationCount& operator=(const OperationCount&) = delete;

  double flops() const;
  /// Operators that a device would have to start: those that call no others, without views and
  /// allocations.
  std::int64_t kernels() const;

 private:
  struct Counts {
    double flops = 0;
    std::int64_t kernels = 0;
  };

  friend void count_multiply_adds(double count);
  friend void count_operators(std::int64_t count);
  friend struct OperatorCall;

  static Counts*& counting();

  Counts counts_;
  std::uint64_t callback_;
};

/// Add to the counts for a layer whose forward runs none of LibTorch's operators on the meta
/// device.
void count_multiply_adds(double count);
void count_operators(std::int64_t count);

}  // namespace pipewright
