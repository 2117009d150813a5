// SPDX-License-Identifier: Apache-2.0
/// Sort quantization (SQ), as gpipe_test compresses activations and gradients: the values are cut
/// by rank into groups of equal size, and each group has its own levels between its least and its
/// greatest value (sort_quantization_code.h has the definition). Resolution is highest where most
/// values are, which suits heavy tails but not tensors in which half the values are equal. A CPU
/// sorts only a sample and a few percent of the values of a large tensor, and no order is sent.
/// Coders keep no state, and gradients are compressed like activations.
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/codecs/codec.h"
#include "core/codecs/kinds/sort_quantization_device.h"
#include "core/codecs/loops/sort_quantization_code.h"
#include "core/codecs/loops/zero_map.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

void on_threads(std::int64_t n, std::int64_t grain,
                const std::function<void(std::int64_t, std::int64_t)>& work) {
  at::parallel_for(0, n, grain, work);
}

std::span<const float> values_of(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())};
}

std::span<const std::byte> payload_bytes(const at::Tensor& payload) {
  return {static_cast<const std::byte*>(payload.const_data_ptr()), payload.nbytes()};
}
std::span<std::byte> bytes_to(const at::Tensor& payload) {
  return {static_cast<std::byte*>(payload.mutable_data_ptr()), payload.nbytes()};
}
std::span<float> values_to(const at::Tensor& x) {
  return {x.mutable_data_ptr<float>(), static_cast<std::size_t>(x.numel())};
}

class SortCoder : public Coder {
 public:
  explicit SortCoder(const SortQuantization& settings) : settings_(settings) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    if (!x.is_cpu()) {
      encode_on_device(settings_, x, out.payload(settings_.payload_bytes(x.numel())));
      return;
    }
    const auto groups = find_groups(settings_, values_of(x), on_threads);
    if (!groups) return;
    const at::Tensor payload = out.payload(settings_.payload_bytes(x.numel()));
    encode_groups(settings_, *groups, values_of(x), bytes_to(payload), on_threads);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const std::int64_t n = c10::multiply_integers(sizes);
    check(payload, n);
    const at::Tensor x = at::empty(sizes, at::TensorOptions(at::kFloat).device(payload.device()));
    if (payload.is_cpu())
      decode_quantized(payload_bytes(payload), values_to(x), on_threads);
    else
      decode_on_device(settings_, payload, x);
    return x;
  }

 protected:
  const SortQuantization& settings() const { return settings_; }

  /// Throws Error{Data} if this end would not have made such a payload from n values; on a device
  /// the host checks only the number of bytes.
  void check(const at::Tensor& payload, std::int64_t n) const {
    if (payload.numel() != settings_.payload_bytes(n) && !payload.is_cpu())
      throw Error(ErrorKind::Data, concat("a message of sort_quantization has ", payload.numel(),
                                          " bytes for ", n, " values"));
    if (payload.is_cpu()) check(read_quantized(payload_bytes(payload), n), n);
  }

 private:
  void check(const SortQuantization& said, std::int64_t n) const {
    const SortQuantization ours = settings_.for_values(n);
    if (said.bits != ours.bits || said.split != ours.split || said.container != ours.container)
      throw Error(ErrorKind::Data, concat("a message of sort_quantization has ", said.bits, " + ",
                                          said.split, " bits, this end ", ours.bits, " + ",
                                          ours.split, "; both ends need the same options"));
  }

  SortQuantization settings_;
};

/// Sends a bit map of the zeros and encodes the other values as SortCoder does. On another device
/// the host waits for the number of nonzero values.
class SortCoderWithoutZeros final : public SortCoder {
 public:
  using SortCoder::SortCoder;

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    const std::int64_t n = x.numel(), before = zero_map_bytes(n);
    if (!x.is_cpu()) {
      const at::Tensor flat = x.reshape({-1});
      const at::Tensor others = flat.masked_select(flat.ne(0));
      const at::Tensor payload = out.payload(before + settings().payload_bytes(others.numel()));
      write_zero_map(x, others.numel(), payload.narrow(0, 0, before));
      encode_on_device(settings(), others, payload.narrow(0, before, payload.numel() - before));
      return;
    }
    std::vector<std::byte> map(static_cast<std::size_t>(before));
    const std::vector<float> others = take_zeros_out(values_of(x), map);
    const auto groups = find_groups(settings(), others, on_threads);
    if (!groups) return;
    const at::Tensor payload = out.payload(before + settings().payload_bytes(std::ssize(others)));
    std::ranges::copy(map, bytes_to(payload).begin());
    encode_groups(settings(), *groups, others, bytes_to(payload).subspan(map.size()), on_threads);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes,
                    const CodecCall& call) override {
    const std::int64_t n = c10::multiply_integers(sizes), before = zero_map_bytes(n);
    if (payload.numel() < before)
      throw Error(ErrorKind::Data, concat("a message of sort_quantization has ", payload.numel(),
                                          " bytes for ", n, " values and their zeros"));
    const at::Tensor map = payload.narrow(0, 0, before);
    const std::int64_t count = others_of(payload_bytes(map.cpu()), n);
    const at::Tensor others =
        SortCoder::decode(payload.narrow(0, before, payload.numel() - before), {count}, call);
    const at::Tensor x = at::empty(sizes, others.options());
    if (payload.is_cpu())
      put_zeros_in(payload_bytes(map), values_of(others), values_to(x));
    else if (n > 0)
      x.zero_().masked_scatter_(nonzeros_of(map, n).view(sizes), others);
    return x;
  }
};

class SortQuantizationCodec final : public Codec {
 public:
  explicit SortQuantizationCodec(Options& options) {
    settings_.bits = static_cast<int>(options.integer(
        "bits", 6, "Bits of a value's level within its group, which has 2^bits levels.",
        {1, kMostCodeBits}));
    const auto split = options.integer(
        "split", 2,
        "Logarithm of the number of groups that values are divided into by rank: 2^split groups, "
        "so that a value takes bits + split bits. With split_means: count it is the number itself.",
        {0, 1 << (kMostCodeBits - 1)});
    const bool count =
        options.choice("split_means", {"log2", "count"}, "log2",
                       "Meaning of split: the number of groups (count) or its logarithm (log2). "
                       "gpipe_test's pipelines read its flag as log2, its simulator as count.") ==
        "count";
    settings_.container =
        options.choice("wire", {"packed", "container"}, "packed",
                       "Layout of a message. packed: a value takes just its bits; container: 8 or "
                       "16 bits, as gpipe_test sends it.") == "container";
    settings_.sampled =
        options.choice(
            "thresholds", {"exact", "sampled"}, "exact",
            "Boundaries of the groups. exact: all groups have equal size; sampled: faster, from "
            "65,536 of the values, so that sizes differ by a few percent.") == "sampled";
    skip_zeros_ =
        options.flag("skip_zeros", false,
                     "Whether zeros are sent as one bit each, so that they stay exact, and groups "
                     "made of the other values. On a GPU the host waits for their number.");
    settings_.split = logarithm(options, split, count);
    if (settings_.code_bits() > kMostCodeBits) {
      options.problem("bits",
                      concat("and split take ", counted(settings_.code_bits(), "bit"),
                             " per value together; at most ", kMostCodeBits, " are possible"));
      settings_ = {};
    }
  }

  std::unique_ptr<Coder> coder() const override {
    if (skip_zeros_) return std::make_unique<SortCoderWithoutZeros>(settings_);
    return std::make_unique<SortCoder>(settings_);
  }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    if (skip_zeros_) return {};
    return settings_.payload_bytes(c10::multiply_integers(sizes));
  }

 private:
  static int logarithm(Options& options, std::int64_t split, bool count) {
    if (!count && split > kMostCodeBits) {
      options.problem("split",
                      concat("is ", split, ", which makes 2^", split, " groups; at most 2^",
                             kMostCodeBits, " are possible (or set split_means: count)"));
      return 0;
    }
    if (!count) return static_cast<int>(split);
    if (split < 1 || !std::has_single_bit(static_cast<std::uint64_t>(split))) {
      options.problem("split",
                      concat("is ", split, "; with split_means: count it must be a power of two"));
      return 0;
    }
    return std::countr_zero(static_cast<std::uint64_t>(split));
  }

  SortQuantization settings_;
  bool skip_zeros_;
};

PIPEWRIGHT_CODEC(sort_quantization, SortQuantizationCodec,
                 "Groups by rank, each with levels of its own (gpipe_test's SQ).");

}  // namespace
}  // namespace pipewright
