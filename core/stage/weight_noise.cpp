// SPDX-License-Identifier: Apache-2.0
#include "core/stage/weight_noise.h"

#include <ATen/Parallel.h>

#include "core/base/random.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {

WeightNoise::WeightNoise(double size, const FlatLayout& layout, const at::TensorOptions& options)
    : size_(size), layout_(layout), factors_(at::zeros({layout.size}, options)) {
  for (const FlatLayout::Entry& entry : layout.entries) names_.push_back(stable_hash(entry.name));
}

const at::Tensor& WeightNoise::factors(const Pass& pass) {
  const MicroBatch now{pass.epoch, pass.minibatch, pass.first_sample};
  if (now == drawn_) return factors_;
  for (std::size_t i = 0; i < names_.size(); ++i) draw(i, pass);
  drawn_ = now;
  return factors_;
}

/// Weight i of a parameter of `size` weights has element first_sample·size + i of its stream,
/// whatever order the weights have in memory.
void WeightNoise::draw(std::size_t parameter, const Pass& pass) {
  const FlatLayout::Entry& entry = layout_.entries[parameter];
  const RandomStream stream(pass.seed, "weight noise", names_[parameter], pass.time());
  const at::Tensor drawn = at::empty(entry.shape, at::kDouble);
  double* const values = drawn.mutable_data_ptr<double>();
  const std::uint64_t first =
      static_cast<std::uint64_t>(pass.first_sample) * static_cast<std::uint64_t>(entry.size);
  constexpr std::int64_t kGrain = 1 << 12;
  at::parallel_for(0, entry.size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      values[i] = 1 + size_ * stream.normal(first + static_cast<std::uint64_t>(i));
  });
  entry.view(factors_).copy_(upload(drawn, factors_.device()));
}

}  // namespace pipewright
