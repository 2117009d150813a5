/// Sort quantization (SQ), as gpipe_test compresses activations and gradients: values are cut by
/// rank into groups of equal size, and each group has levels of its own between its least and its
/// greatest value (sort_quantization_code.h has the definition). So resolution goes where the
/// values are: good for heavy tails, not for values of which half are the same. Nothing is sorted
/// and no order is sent. Every message stands for itself; the gradient is compressed in its own
/// right.
#include <ATen/Parallel.h>

#include <bit>

#include "core/base/error.h"
#include "core/codecs/codec.h"
#include "core/codecs/sort_quantization_code.h"
#include "core/codecs/sort_quantization_device.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

void on_threads(std::int64_t n, std::int64_t grain,
                const std::function<void(std::int64_t, std::int64_t)>& work) {
  at::parallel_for(0, n, grain, work);
}

std::span<const float> values_of(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), static_cast<std::size_t>(x.numel())};
}

class SortCoder final : public Coder {
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
    encode_groups(settings_, *groups, values_of(x),
                  {static_cast<std::byte*>(payload.mutable_data_ptr()), payload.nbytes()},
                  on_threads);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const std::int64_t n = c10::multiply_integers(sizes);
    const auto options = at::TensorOptions(at::kFloat).device(payload.device());
    if (!payload.is_cpu()) {
      if (payload.numel() != settings_.payload_bytes(n))
        throw Error(ErrorKind::Data, concat("a message of sort_quantization has ", payload.numel(),
                                            " bytes for ", n, " values"));
      const at::Tensor x = at::empty(sizes, options);
      decode_on_device(settings_, payload, x);
      return x;
    }
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(payload.const_data_ptr()),
                                           payload.nbytes());
    check(read_quantized(bytes, n), n);
    const at::Tensor x = at::empty(sizes, options);
    decode_quantized(bytes, {x.mutable_data_ptr<float>(), static_cast<std::size_t>(n)}, on_threads);
    return x;
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

class SortQuantizationCodec final : public Codec {
 public:
  explicit SortQuantizationCodec(Options& options) {
    settings_.bits = static_cast<int>(options.integer(
        "bits", 6, "Bits of a value's level inside its group: 2^bits levels.", {1, kMostCodeBits}));
    const auto split =
        options.integer("split", 2,
                        "Groups that values are cut into by rank, as a power of two: 2^split, so "
                        "that a value takes "
                        "bits + split bits. (split_means: count makes it the number itself.)",
                        {0, 1 << (kMostCodeBits - 1)});
    const bool count =
        options.choice(
            "split_means", {"log2", "count"}, "log2",
            "Whether split is the groups' number or its logarithm: gpipe_test's pipelines "
            "read its flag as log2, its simulator as count.") == "count";
    settings_.container =
        options.choice(
            "wire", {"packed", "container"}, "packed",
            "packed: a value takes just its bits. container: 8 or 16 bits, as gpipe_test "
            "sends it.") == "container";
    settings_.sampled =
        options.choice(
            "thresholds", {"exact", "sampled"}, "exact",
            "Where groups end. exact: all are of equal size. sampled: faster; the limits "
            "are those of 65,536 of the values, sizes differ by a few percent.") == "sampled";
    settings_.split = logarithm(options, split, count);
    if (settings_.code_bits() > kMostCodeBits) {
      options.problem("bits", concat("bits + log2 of the groups' number is ", settings_.code_bits(),
                                     "; at most ", kMostCodeBits, " bits fit"));
      settings_ = {};
    }
  }

  std::unique_ptr<Coder> coder() const override { return std::make_unique<SortCoder>(settings_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return settings_.payload_bytes(c10::multiply_integers(sizes));
  }

 private:
  static int logarithm(Options& options, std::int64_t split, bool count) {
    if (!count && split > kMostCodeBits) {
      options.problem("split",
                      concat("2^", split, " groups are too many; split is a power of two"));
      return 0;
    }
    if (!count) return static_cast<int>(split);
    if (split < 1 || !std::has_single_bit(static_cast<std::uint64_t>(split))) {
      options.problem("split", concat(split, " groups; their number must be a power of two"));
      return 0;
    }
    return std::countr_zero(static_cast<std::uint64_t>(split));
  }

  SortQuantization settings_;
};

PIPEWRIGHT_REGISTER(Codec, sort_quantization, SortQuantizationCodec,
                    "Groups by rank, each with levels of its own (gpipe_test's SQ).");

}  // namespace
}  // namespace pipewright
