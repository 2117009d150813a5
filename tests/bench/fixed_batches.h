// SPDX-License-Identifier: Apache-2.0
/// The same mini-batch for ever, on the device it is given on, so that loading is not measured.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "core/runtime/batches.h"

namespace pipewright::bench {

class FixedBatches final : public Batches {
 public:
  FixedBatches(Tensors x, at::Tensor y, int microbatches = 1)
      : x_(std::move(x)), y_(std::move(y)), microbatches_(microbatches) {}
  FixedBatches(at::Tensor x, at::Tensor y, int microbatches = 1)
      : FixedBatches(Tensors{std::move(x)}, std::move(y), microbatches) {}
  Share share(int, int, int microbatch) const override {
    const std::int64_t all = y_.size(0);
    const Slice slice = slice_of(all, microbatches_, microbatch);
    return {slice.begin, slice.size, all, all};
  }
  Tensors inputs(int, const Share& share, at::Device) override {
    Tensors parts;
    for (const at::Tensor& x : x_) parts.push_back(part(x, share));
    return parts;
  }
  at::Tensor targets(int, const Share& share, at::Device) override { return part(y_, share); }

 private:
  static at::Tensor part(const at::Tensor& all, const Share& share) {
    return all.narrow(0, share.first_sample, share.samples);
  }

  Tensors x_;
  at::Tensor y_;
  int microbatches_;
};

}  // namespace pipewright::bench
