// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/kinds/uniform_quantizer.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/noise_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

Per per_of(const std::string& word) {
  if (word == "channel") return Per::Channel;
  if (word == "token") return Per::Token;
  return word == "group" ? Per::Group : Per::Tensor;
}

at::Tensor without_sign_of_zero(const at::Tensor& x) {
  return at::where(x == 0, 0.0F, x);
}

/// Random numbers for the values of one tensor. A value's number depends on its place in the whole
/// mini-batch, not on how that is cut into micro-batches.
class Noise {
 public:
  Noise(const CodecCall& call, at::IntArrayRef sizes) {
    const auto words =
        RandomStream(call.seed, "stochastic rounding", place(call), when(call)).block(0);
    key_ = std::uint64_t{words[0]} << 32 | words[1];
    high_ = std::uint64_t{words[2]} << 32 | words[3];
    const std::int64_t n = c10::multiply_integers(sizes);
    if (n > 0 && !sizes.empty())
      first_ = static_cast<std::uint64_t>(call.first_sample * (n / sizes[0]));
  }

  /// Fills in the numbers of the values from `first` on: in [0, 1), with 24 bits.
  void fill(std::uint64_t first, std::span<float> noise) const {
    uniform_noise(key_, high_, first_ + first, noise);
  }

 private:
  static std::uint64_t place(const CodecCall& call) {
    return (std::uint64_t{static_cast<std::uint32_t>(call.edge)} << 32) |
           (std::uint64_t{static_cast<std::uint32_t>(call.tensor)} << 1) |
           std::uint64_t{call.backward};
  }
  static std::uint64_t when(const CodecCall& call) {
    return (std::uint64_t{static_cast<std::uint32_t>(call.epoch)} << 32) |
           static_cast<std::uint32_t>(call.minibatch);
  }

  std::uint64_t key_, high_, first_ = 0;
};

}  // namespace

UniformQuantizer::UniformQuantizer(Options& options, const UniformDefaults& defaults)
    : bits_(static_cast<int>(options.integer("bits", defaults.bits, "Bits per value.",
                                             {1, static_cast<double>(kMostBits)}))),
      per_(per_of(options.choice(
          "per", {"tensor", "channel", "token", "group"}, defaults.per,
          "Values that share a range. tensor: all; channel: those of one index of dimension 1; "
          "token: a row of the last dimension; group: `group` consecutive values."))),
      group_(
          options.integer("group", 64, "per: group: number of values in a group.", {1, 1 << 30})),
      symmetric_(options.flag("symmetric", defaults.symmetric,
                              "Whether the levels lie symmetrically around 0, up to the largest "
                              "absolute value; false: from the least value to the largest.")),
      stochastic_(
          options.choice("rounding", {"nearest", "stochastic"}, "nearest",
                         "Rounding. nearest: to the nearest level, ties to even; stochastic: at "
                         "random to one of the two levels around the value, unbiased.") ==
          "stochastic") {
  if (symmetric_ && bits_ == 1) {
    options.problem(
        "bits",
        "is 1, which leaves symmetric: true no level but 0; expected a whole number from 2 to 16");
    bits_ = 2;
  }
  const int half = (1 << (bits_ - 1)) - 1;
  grid_ = symmetric_ ? UniformGrid{2 * half, half} : UniformGrid{(1 << bits_) - 1, 0};
}

UniformQuantizer::Runs UniformQuantizer::runs(at::IntArrayRef sizes) const {
  const std::int64_t n = c10::multiply_integers(sizes);
  if (n == 0) return {};
  if (per_ == Per::Group) return {1, (n + group_ - 1) / group_, group_, n};
  if (per_ == Per::Token && !sizes.empty()) return {1, n / sizes.back(), sizes.back(), n};
  if (per_ == Per::Channel && sizes.size() > 1)
    return {sizes[0], sizes[1], n / sizes[0] / sizes[1], n};
  return {1, 1, n, n};
}

template <class Take>
void UniformQuantizer::each_run(const Runs& runs, const Take& take) {
  for (std::int64_t outer = 0, first = 0; outer < runs.outer; ++outer)
    for (std::int64_t group = 0; group < runs.groups; ++group, first += runs.inner)
      take(group, static_cast<std::size_t>(first),
           static_cast<std::size_t>(std::min(runs.inner, runs.values - first)));
}

std::int64_t UniformQuantizer::table(const Runs& runs) const {
  return runs.groups * (symmetric_ ? 4 : 8);
}

std::int64_t UniformQuantizer::bytes(at::IntArrayRef sizes) const {
  const Runs r = runs(sizes);
  return table(r) + packed_bytes(r.values, bits_);
}

std::optional<UniformLevels> UniformQuantizer::levels(const ValueRange& range) const {
  if (!range.finite()) return std::nullopt;
  const float least = range.least(), most = range.most();
  const UniformLevels found =
      symmetric_ ? UniformLevels{0, std::max(most, -least) / static_cast<float>(grid_.zero) + 0.0F}
                 : UniformLevels{least, (most - least) / static_cast<float>(grid_.top)};
  return std::isfinite(found.step) ? std::optional(found) : std::nullopt;
}

UniformLevels UniformQuantizer::read_levels(const float* table, std::int64_t group) const {
  if (symmetric_) return {0, table[group]};
  return {table[2 * group], table[2 * group + 1]};
}

bool UniformQuantizer::encode(const at::Tensor& x, const CodecCall& call,
                              const at::Tensor& payload) const {
  if (!x.is_cpu()) {
    encode_anywhere(x, call, payload);
    return true;
  }
  const Runs r = runs(x.sizes());
  const float* const values = x.const_data_ptr<float>();
  std::vector<ValueRange> ranges(static_cast<std::size_t>(r.groups));
  each_run(r, [&](std::int64_t group, std::size_t first, std::size_t n) {
    ranges[static_cast<std::size_t>(group)].include({values + first, n});
  });
  auto* entry = static_cast<float*>(payload.mutable_data_ptr());
  const float* const first_entry = entry;
  for (const ValueRange& range : ranges) {
    const auto found = levels(range);
    if (!found) return false;
    if (!symmetric_) *entry++ = found->base;
    *entry++ = found->step;
  }
  BitWriter writer(bytes_from(payload, table(r)), bits_);
  const Noise noise(call, x.sizes());
  each_run(r, [&](std::int64_t group, std::size_t first, std::size_t n) {
    const UniformLevels own = read_levels(first_entry, group);
    writer.write(n, [&](std::size_t at, std::span<std::uint16_t> codes) {
      const std::span piece(values + first + at, codes.size());
      if (!stochastic_) return quantize(piece, own, grid_, codes);
      float random[BitWriter::kChunk];
      noise.fill(first + at, {random, codes.size()});
      quantize(piece, own, grid_, {random, codes.size()}, codes);
    });
  });
  writer.flush();
  return true;
}

at::Tensor UniformQuantizer::decode(const at::Tensor& payload, at::IntArrayRef sizes) const {
  check_bytes(payload, bytes(sizes));
  if (!payload.is_cpu()) return decode_anywhere(payload, sizes);
  const Runs r = runs(sizes);
  const at::Tensor x = at::empty(sizes, at::TensorOptions(at::kFloat));
  auto* const values = x.mutable_data_ptr<float>();
  const at::Tensor entries = floats_of(payload, 0, table(r) / 4);
  BitReader reader(bytes_from(payload, table(r)), bits_);
  each_run(r, [&](std::int64_t group, std::size_t first, std::size_t n) {
    const UniformLevels own = read_levels(entries.const_data_ptr<float>(), group);
    reader.read(n, [&](std::size_t at, std::span<const std::uint16_t> codes) {
      dequantize(codes, own, grid_, {values + first + at, codes.size()});
    });
  });
  return x;
}

/// x as [outer, groups, inner]; a short last run is padded with its last value.
at::Tensor UniformQuantizer::filled_up(const at::Tensor& x, const Runs& r) const {
  const std::int64_t missing = r.outer * r.groups * r.inner - r.values;
  const at::Tensor flat = x.reshape({-1});
  const at::Tensor whole =
      missing == 0 ? flat : at::cat({flat, flat.narrow(0, r.values - 1, 1).expand({missing})});
  return whole.view({r.outer, r.groups, r.inner});
}

void UniformQuantizer::encode_anywhere(const at::Tensor& x, const CodecCall& call,
                                       const at::Tensor& payload) const {
  const Runs r = runs(x.sizes());
  if (r.values == 0) return;
  const at::Tensor values = filled_up(x, r);
  const at::Tensor least = without_sign_of_zero(values.amin({0, 2})), most = values.amax({0, 2});
  const at::Tensor step =
      without_sign_of_zero(symmetric_ ? quotient(at::maximum(-least, most), grid_.zero)
                                      : quotient(most - least, grid_.top));
  const at::Tensor entries = floats_of(payload, 0, table(r) / 4);
  if (symmetric_)
    entries.copy_(step);
  else
    entries.view({-1, 2}).copy_(at::stack({least, step}, 1));
  const at::Tensor divisor =
      at::where(step == 0, std::numeric_limits<float>::infinity(), step).view({1, -1, 1});
  at::Tensor v = (symmetric_ ? values : values - least.view({1, -1, 1})) / divisor;
  v = v.clamp_(-grid_.zero, grid_.top - grid_.zero).view({-1}).narrow(0, 0, r.values);
  if (stochastic_) {
    const at::Tensor random = at::empty({r.values}, at::TensorOptions(at::kFloat));
    Noise(call, x.sizes())
        .fill(0, {random.mutable_data_ptr<float>(), static_cast<std::size_t>(r.values)});
    const at::Tensor down = v.floor();
    v = down + (upload(random, x.device()) < v - down);
  }
  payload.narrow(0, table(r), packed_bytes(r.values, bits_))
      .copy_(packed(v.round().nan_to_num(0).to(at::kInt) + grid_.zero, bits_));
}

at::Tensor UniformQuantizer::decode_anywhere(const at::Tensor& payload,
                                             at::IntArrayRef sizes) const {
  const Runs r = runs(sizes);
  if (r.values == 0) return at::empty(sizes, payload.options().dtype(at::kFloat));
  const at::Tensor codes =
      unpacked(payload.narrow(0, table(r), packed_bytes(r.values, bits_)), r.values, bits_);
  const std::int64_t whole = r.outer * r.groups * r.inner;
  const at::Tensor levels = at::constant_pad_nd(codes - grid_.zero, {0, whole - r.values})
                                .to(at::kFloat)
                                .view({r.outer, r.groups, r.inner});
  const at::Tensor entries = floats_of(payload, 0, table(r) / 4).view({r.groups, -1});
  at::Tensor x = levels * entries.select(1, entries.size(1) - 1).view({1, -1, 1});
  if (!symmetric_) x = x + entries.select(1, 0).view({1, -1, 1});
  return x.view({-1}).narrow(0, 0, r.values).clone().view(sizes);
}

}  // namespace pipewright
