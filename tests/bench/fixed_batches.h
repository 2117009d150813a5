/// Data for benchmarks of steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "core/runtime/batches.h"

namespace pipewright::bench {

/// The same mini-batch for ever, on the device it is given on: loading is not measured.
class FixedBatches final : public Batches {
 public:
  FixedBatches(at::Tensor x, at::Tensor y) : x_(std::move(x)), y_(std::move(y)) {}
  Share share(int, int, int) const override { return {0, x_.size(0), x_.size(0), x_.size(0)}; }
  at::Tensor inputs(int, const Share&, at::Device) override { return x_.detach(); }
  at::Tensor targets(int, const Share&, at::Device) override { return y_; }

 private:
  at::Tensor x_, y_;
};

}  // namespace pipewright::bench
