// SPDX-License-Identifier: Apache-2.0
// Uses the CUDA kernels if they are loaded, otherwise LibTorch's operators on any device, which
// sort.
#include "core/codecs/kinds/sort_quantization_device.h"

#include <limits>

#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/cuda_kernels.h"
#include "core/codecs/loops/rank_selection.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kHeader = 8;

/// [groups, 2]: least and greatest value of each group when sorted values are cut into equal parts.
at::Tensor ends_of_parts(const at::Tensor& sorted, std::int64_t groups) {
  const at::Tensor g = at::arange(groups + 1, sorted.options().dtype(at::kLong));
  const at::Tensor begins = g * (sorted.numel() / groups) + g.clamp_max(sorted.numel() % groups);
  return at::stack({sorted.index_select(0, begins.narrow(0, 0, groups)),
                    sorted.index_select(0, begins.narrow(0, 1, groups) - 1)},
                   1);
}

/// Where sorted_sample() looks among n values: one place in each of m equal parts. The states of
/// its generator are aⁱ⁺¹·s + c·(1 + … + aⁱ) modulo 2⁶⁴, so products and sums in any order give
/// them.
at::Tensor places_of_sample(std::int64_t n, const at::TensorOptions& device) {
  const std::int64_t m = std::min(n, kSampleOfLimits);
  const auto wrapped = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
  const auto options = device.dtype(at::kLong);
  const at::Tensor powers = at::full({m}, wrapped(kSampleFactor), options).cumprod(0);
  const at::Tensor sums = at::cat({at::ones({1}, options), powers.narrow(0, 0, m - 1)}).cumsum(0);
  const at::Tensor states = powers * wrapped(kSampleSeed) + sums * wrapped(kSampleSummand);
  const at::Tensor numbers = states.bitwise_right_shift(40).bitwise_and((1 << 24) - 1);
  const at::Tensor i = at::arange(m, options);
  const at::Tensor begin = i * (n / m) + i.clamp_max(n % m);
  const at::Tensor size = n / m + (i < n % m).to(at::kLong);
  return begin + (numbers * size).bitwise_right_shift(24);
}

/// [groups, 2]: least and greatest value of each group when the limits between groups come from a
/// sample.
at::Tensor ends_by_sample(const at::Tensor& x, std::int64_t groups) {
  const at::Tensor places = places_of_sample(x.numel(), x.options());
  const at::Tensor sample = std::get<0>(x.index_select(0, places).sort());
  const at::Tensor limits = ends_of_parts(sample, groups).select(1, 1).narrow(0, 0, groups - 1);
  const at::Tensor group = at::bucketize(x, limits.contiguous());
  const float infinite = std::numeric_limits<float>::infinity();
  const at::Tensor low =
      at::full({groups}, infinite, x.options()).scatter_reduce(0, group, x, "amin");
  const at::Tensor high =
      at::full({groups}, -infinite, x.options()).scatter_reduce(0, group, x, "amax");
  // An empty group gets the greatest value of the groups before it.
  const at::Tensor reached = std::get<0>(high.cummax(0));
  const at::Tensor empty = low > high;
  return at::stack({low.where(~empty, reached), reached}, 1);
}

/// Low, step and high of each group. Low and step are NaN if a value is not finite or a range too
/// wide.
std::array<at::Tensor, 3> groups_of(const SortQuantization& settings, const at::Tensor& x) {
  const at::Tensor ends = settings.samples()
                              ? ends_by_sample(x, settings.groups())
                              : ends_of_parts(std::get<0>(x.sort()), settings.groups());
  const double levels = (1 << settings.bits) - 1;
  const at::Tensor low = ends.select(1, 0), high = ends.select(1, 1);
  // Divides by a tensor, because for a number CUDA multiplies by its reciprocal.
  const at::Tensor step = (high - low).div(at::full({}, levels, x.options()));
  const at::Tensor sound = x.isfinite().all().logical_and((low + step * levels).isfinite().all());
  const at::Tensor nan = at::full({}, std::numeric_limits<float>::quiet_NaN(), x.options());
  return {low.where(sound, nan), step.where(sound, nan), high.contiguous()};
}

at::Tensor codes_of(const SortQuantization& settings, const std::array<at::Tensor, 3>& groups,
                    const at::Tensor& x) {
  const auto& [low, step, high] = groups;
  const double levels = (1 << settings.bits) - 1;
  const at::Tensor group = at::bucketize(x, high.narrow(0, 0, settings.groups() - 1).contiguous());
  const at::Tensor divisor = step.where(step > 0, at::ones_like(step)).index_select(0, group);
  const at::Tensor level = x.sub(low.index_select(0, group)).div(divisor).round().clamp(0, levels);
  const at::Tensor codes =
      group.to(at::kInt) * (1 << settings.bits) + level.nan_to_num(0).to(at::kInt);
  return codes.bitwise_xor(static_cast<std::int64_t>(settings.flip()));
}

void write_header(const SortQuantization& settings, const at::Tensor& payload) {
  const std::array<int, kHeader> header{1, settings.bits, settings.split, settings.container};
  for (std::int64_t i = 0; i < kHeader;
       ++i)  // fill_ passes the number to a kernel; nothing is copied from the host
    payload.narrow(0, i, 1).fill_(header[static_cast<std::size_t>(i)]);
}

}  // namespace

void encode_on_device(const SortQuantization& wanted, const at::Tensor& x,
                      const at::Tensor& payload) {
  if (encode_by_kernels(wanted, x, payload)) return;
  const SortQuantization settings = wanted.for_values(x.numel());
  payload.zero_();
  write_header(settings, payload);
  if (x.numel() == 0) return;
  const at::Tensor values = x.reshape({-1}) + 0.0;  // −0 becomes 0
  const auto groups = groups_of(settings, values);
  payload.narrow(0, kHeader, 8 * settings.groups())
      .view(at::kFloat)
      .view({settings.groups(), 2})
      .copy_(at::stack({groups[0], groups[1]}, 1));
  const at::Tensor codes = packed(codes_of(settings, groups, values), settings.field_bits());
  payload.narrow(0, kHeader + 8 * settings.groups(), codes.numel()).copy_(codes);
}

void decode_on_device(const SortQuantization& wanted, const at::Tensor& payload,
                      const at::Tensor& x) {
  if (x.numel() == 0 || decode_by_kernels(wanted, payload, x)) return;
  const SortQuantization settings = wanted.for_values(x.numel());
  const std::int64_t at = kHeader + 8 * settings.groups();
  const at::Tensor table =
      payload.narrow(0, kHeader, 8 * settings.groups()).view(at::kFloat).view({-1, 2});
  const at::Tensor codes =
      unpacked(payload.narrow(0, at, packed_bytes(x.numel(), settings.field_bits())), x.numel(),
               settings.field_bits())
          .bitwise_xor(static_cast<std::int64_t>(settings.flip()));
  const at::Tensor group =
      codes.bitwise_right_shift(settings.bits).clamp_max(settings.groups() - 1);
  const at::Tensor level = codes.bitwise_and((1 << settings.bits) - 1).to(at::kFloat);
  const at::Tensor low = table.select(1, 0).contiguous(), step = table.select(1, 1).contiguous();
  x.view({-1}).copy_(low.index_select(0, group) + level * step.index_select(0, group));
}

void write_zero_map(const at::Tensor& x, std::int64_t others, const at::Tensor& map) {
  map.zero_();
  map.narrow(0, 0, 8).view(at::kLong).fill_(others);
  if (x.numel() == 0) return;
  const at::Tensor bits = packed(x.reshape({-1}).ne(0).to(at::kInt), 1);
  map.narrow(0, 8, bits.numel()).copy_(bits);
}

at::Tensor nonzeros_of(const at::Tensor& map, std::int64_t n) {
  if (n == 0) return at::empty({0}, map.options().dtype(at::kBool));
  return unpacked(map.narrow(0, 8, packed_bytes(n, 1)), n, 1).to(at::kBool);
}

}  // namespace pipewright
