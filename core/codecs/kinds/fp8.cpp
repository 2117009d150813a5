// SPDX-License-Identifier: Apache-2.0
/// 8-bit floats (Micikevicius et al., 2022): e4m3 has 3 mantissa bits and values up to 448, for
/// activations; e5m2 has 2 mantissa bits and values up to 57344, for gradients. Values are divided
/// by a scale s = max|x|/448 (e5m2: /57344), one float32 per tensor or per block.
///
/// Payload: the scales, then one byte per value.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/codecs/codec.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/small_float_loops.h"
#include "core/codecs/loops/uniform_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

struct Fp8Settings {
  SmallFloat format;
  at::ScalarType type;
  std::int64_t block;  ///< values that share a scale; 0: all

  float largest() const { return small_value(static_cast<std::uint32_t>(format.top), format); }
  std::int64_t scales(std::int64_t n) const {
    return block == 0 ? std::min<std::int64_t>(n, 1) : (n + block - 1) / block;
  }
};

class Fp8Coder final : public Coder {
 public:
  explicit Fp8Coder(const Fp8Settings& settings) : settings_(settings) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    const std::int64_t n = x.numel(), count = settings_.scales(n);
    const at::Tensor payload = out.payload(4 * count + n);
    if (!x.is_cpu())
      encode_anywhere(x, floats_of(payload, 0, count), payload.narrow(0, 4 * count, n));
    else if (!encode_blocks(x, floats_of(payload, 0, count), bytes_from(payload, 4 * count)))
      out.leave_raw();
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const std::int64_t n = c10::multiply_integers(sizes), count = settings_.scales(n);
    check_bytes(payload, 4 * count + n);
    if (payload.is_cpu()) return decode_blocks(payload, count, sizes);
    const at::Tensor codes = payload.narrow(0, 4 * count, n).view(settings_.type).to(at::kFloat);
    return codes.mul_(spread(floats_of(payload, 0, count), n)).view(sizes);
  }

 private:
  /// Expands the scales to one per value (or to a single one that broadcasts).
  at::Tensor spread(const at::Tensor& scales, std::int64_t n) const {
    if (settings_.block == 0) return scales;
    return scales.view({-1, 1}).expand({-1, settings_.block}).reshape({-1}).narrow(0, 0, n);
  }

  bool encode_blocks(const at::Tensor& x, const at::Tensor& scales,
                     std::span<std::byte> codes) const {
    const std::span all(x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel()));
    auto* scale = scales.mutable_data_ptr<float>();
    const auto block = static_cast<std::size_t>(settings_.block);
    BitWriter writer(codes, 8);
    for (std::size_t first = 0; first < all.size();) {
      const auto values =
          all.subspan(first, block == 0 ? all.size() : std::min(block, all.size() - first));
      first += values.size();
      ValueRange range;
      range.include(values);
      if (!range.finite()) return false;
      const float step = std::max(-range.least(), range.most()) / settings_.largest();
      *scale = step > 0 ? step : 1;
      writer.write(values.size(), [&](std::size_t at, std::span<std::uint16_t> piece) {
        divided_codes(values.subspan(at, piece.size()), *scale, settings_.format, piece);
      });
      ++scale;
    }
    writer.flush();
    return true;
  }

  at::Tensor decode_blocks(const at::Tensor& payload, std::int64_t count,
                           at::IntArrayRef sizes) const {
    std::array<float, 256> values{};
    for (std::uint32_t code = 0; code < values.size(); ++code)
      values[code] = small_value(code, settings_.format);
    const at::Tensor x = at::empty(sizes, at::TensorOptions(at::kFloat)),
                     scales = floats_of(payload, 0, count);
    const auto codes = bytes_from(payload, 4 * count);
    auto* into = x.mutable_data_ptr<float>();
    const std::size_t block =
        settings_.block == 0 ? codes.size() : static_cast<std::size_t>(settings_.block);
    for (std::size_t first = 0, i = 0; first < codes.size(); first += block, ++i) {
      const float scale = scales.const_data_ptr<float>()[i];
      for (const std::byte code : codes.subspan(first, std::min(block, codes.size() - first)))
        *into++ = values[std::to_integer<std::size_t>(code)] * scale;
    }
    return x;
  }

  void encode_anywhere(const at::Tensor& x, const at::Tensor& scales,
                       const at::Tensor& codes) const {
    const std::int64_t n = x.numel(), count = scales.numel();
    if (n == 0) return;
    const std::int64_t block = settings_.block == 0 ? n : settings_.block;
    const at::Tensor blocks =
        at::constant_pad_nd(x.view({-1}), {0, count * block - n}).view({count, block});
    const at::Tensor step = quotient(blocks.abs().amax(1), settings_.largest());
    scales.copy_(at::where(step == 0, 1.0F, step));
    const at::Tensor q =
        (blocks / scales.view({-1, 1})).clamp_(-settings_.largest(), settings_.largest());
    // Clamped above, because the cast turns values above the largest into NaN.
    codes.copy_(q.view({-1}).narrow(0, 0, n).to(settings_.type).view(at::kByte));
  }

  const Fp8Settings& settings_;
};

class Fp8 final : public Codec {
 public:
  explicit Fp8(Options& options) {
    const bool e4m3 =
        options.choice(
            "format", {"e4m3", "e5m2"}, "e4m3",
            "Format of a value. e4m3: 3 bits of mantissa; e5m2: 2, and a larger range.") == "e4m3";
    const bool blocks =
        options.choice(
            "per", {"tensor", "block"}, "tensor",
            "Values that share a scale: the whole tensor, or blocks of 128 consecutive values.") ==
        "block";
    settings_ = {e4m3 ? kE4M3 : kE5M2, e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2,
                 blocks ? 128 : 0};
  }
  std::unique_ptr<Coder> coder() const override { return std::make_unique<Fp8Coder>(settings_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    const std::int64_t n = c10::multiply_integers(sizes);
    return 4 * settings_.scales(n) + n;
  }

 private:
  Fp8Settings settings_;
};

PIPEWRIGHT_CODEC(fp8, Fp8, "8-bit floats with a scale: one byte per value.");

}  // namespace
}  // namespace pipewright
