// SPDX-License-Identifier: Apache-2.0
/// AQ-SGD (Wang et al., 2022): both ends of an edge cache, for each sample, the activation m that
/// arrived last, and only the quantized change crosses: m ← m + Q(a − m). A sample's first visit is
/// not compressed. Gradients, and everything in evaluation, are quantized directly.
///
/// Each end of an edge caches the activations of the whole training split at that edge. If inputs
/// change from epoch to epoch, as with random crops, the changes are no smaller than the values.
///
/// Payload of a forward in training: one bit per sample, 1 if it is sent as a change, padded to 8
/// bytes; the rows of the other samples, float32; the changes, encoded as `uniform` encodes a
/// tensor.
#include "core/base/error.h"
#include "core/codecs/codec.h"
#include "core/codecs/kinds/uniform_quantizer.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/payload.h"
#include "core/codecs/sample_memory.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

struct AqSgdSettings {
  UniformQuantizer quantizer;
  at::ScalarType cache;
};

/// The layout of a message. Both ends derive the same layout from their caches.
struct Visit {
  Visit(const SampleMemory& memory, at::IntArrayRef sizes, const CodecCall& call,
        const UniformQuantizer& quantizer)
      : row(sizes.slice(1)), flags(call.samples.size()) {
    for (std::size_t i = 0; i < call.samples.size(); ++i) {
      flags[i] = memory.has(call.samples[i], row) ? 1 : 0;
      (flags[i] != 0 ? known : fresh).push_back(static_cast<std::int64_t>(i));
      (flags[i] != 0 ? known_samples : fresh_samples).push_back(call.samples[i]);
    }
    flag_bytes = (packed_bytes(std::ssize(flags), 1) + 7) / 8 * 8;
    fresh_bytes = 4 * std::ssize(fresh) * c10::multiply_integers(row);
    change_bytes = quantizer.bytes(sizes_of(known));
  }

  std::vector<std::int64_t> sizes_of(const std::vector<std::int64_t>& rows) const {
    std::vector<std::int64_t> sizes{std::ssize(rows)};
    sizes.insert(sizes.end(), row.begin(), row.end());
    return sizes;
  }
  std::int64_t bytes() const { return flag_bytes + fresh_bytes + change_bytes; }
  at::Tensor flags_of(const at::Tensor& payload) const { return payload.narrow(0, 0, flag_bytes); }
  at::Tensor fresh_of(const at::Tensor& payload) const {
    return floats_of(payload, flag_bytes, fresh_bytes / 4).view(sizes_of(fresh));
  }
  at::Tensor changes_of(const at::Tensor& payload) const {
    return payload.narrow(0, flag_bytes + fresh_bytes, change_bytes);
  }
  at::Tensor packed_flags() const {
    const at::Tensor bytes = at::zeros({flag_bytes}, at::TensorOptions(at::kByte));
    const auto used = static_cast<std::size_t>(packed_bytes(std::ssize(flags), 1));
    pack(flags, 1, bytes_from(bytes, 0).first(used));
    return bytes;
  }

  at::IntArrayRef row;
  std::vector<std::uint16_t> flags;        ///< 1: sent as a change
  std::vector<std::int64_t> known, fresh;  ///< indices within the micro-batch
  std::vector<std::int64_t> known_samples, fresh_samples;
  std::int64_t flag_bytes, fresh_bytes, change_bytes;
};

at::Tensor index_of(const std::vector<std::int64_t>& places, at::Device device) {
  return upload(at::tensor(places, at::kLong), device);
}

class AqSgdCoder final : public Coder {
 public:
  explicit AqSgdCoder(const AqSgdSettings& settings)
      : settings_(settings), memory_(settings.cache) {}

  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    const UniformQuantizer& quantizer = settings_.quantizer;
    if (!remembers(x.sizes(), call)) {
      if (!quantizer.encode(x, call, out.payload(quantizer.bytes(x.sizes())))) out.leave_raw();
      return;
    }
    if (goes_raw(x)) return;
    const Visit visit(memory_, x.sizes(), call, quantizer);
    const at::Tensor payload = out.payload(visit.bytes());
    visit.flags_of(payload).copy_(upload(visit.packed_flags(), x.device()));
    if (!visit.fresh.empty())
      visit.fresh_of(payload).copy_(x.index_select(0, index_of(visit.fresh, x.device())));
    if (!visit.known.empty()) {
      const at::Tensor known = x.index_select(0, index_of(visit.known, x.device()));
      const at::Tensor before = memory_.rows(visit.known_samples, visit.row, x.device());
      if (!quantizer.encode(known - before, call, visit.changes_of(payload)))
        return out.leave_raw();
    }
    take_over(visit, payload);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes,
                    const CodecCall& call) override {
    if (!remembers(sizes, call)) return settings_.quantizer.decode(payload, sizes);
    const Visit visit(memory_, sizes, call, settings_.quantizer);
    check_bytes(payload, visit.bytes());
    if (payload.is_cpu() && !visit.flags_of(payload).equal(visit.packed_flags()))
      throw Error(ErrorKind::Data,
                  "a compressed message has changes of other samples than this end remembers");
    const at::Tensor x = at::empty(sizes, payload.options().dtype(at::kFloat));
    if (!visit.fresh.empty())
      x.index_copy_(0, index_of(visit.fresh, x.device()), visit.fresh_of(payload));
    const at::Tensor known = take_over(visit, payload);
    if (known.defined()) x.index_copy_(0, index_of(visit.known, x.device()), known);
    return x;
  }

  NamedTensors state() const override { return memory_.state(); }
  void restore(const NamedTensors& state) override { memory_.restore(state); }

 private:
  static bool remembers(at::IntArrayRef sizes, const CodecCall& call) {
    return call.training && !call.backward && has_samples(sizes, call) &&
           c10::multiply_integers(sizes) > 0;
  }

  /// Updates the cache from a message, identically on both ends; returns the rows of the known
  /// samples, or an undefined tensor if there are none.
  at::Tensor take_over(const Visit& visit, const at::Tensor& payload) {
    at::Tensor now;
    if (!visit.known.empty()) {
      const at::Tensor before = memory_.rows(visit.known_samples, visit.row, payload.device());
      const at::Tensor change =
          settings_.quantizer.decode(visit.changes_of(payload), visit.sizes_of(visit.known));
      now = memory_.rounded(before + change);
      memory_.keep(visit.known_samples, now);
    }
    if (!visit.fresh.empty()) memory_.keep(visit.fresh_samples, visit.fresh_of(payload));
    return now;
  }

  const AqSgdSettings& settings_;
  SampleMemory memory_;
};

class AqSgd final : public Codec {
 public:
  explicit AqSgd(Options& options)
      : settings_{UniformQuantizer(options, {.bits = 4, .per = "token", .symmetric = true}),
                  options.choice("cache", {"float16", "float32"}, "float16",
                                 "Number format in which both ends remember samples.") == "float16"
                      ? at::kHalf
                      : at::kFloat} {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<AqSgdCoder>(settings_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef) const override {
    return std::nullopt;  // depends on the samples: first visits are larger
  }
  bool by_sample() const override { return true; }

 private:
  AqSgdSettings settings_;
};

PIPEWRIGHT_CODEC(aq_sgd, AqSgd, "AQ-SGD: the quantized change of a sample since it was last sent.");

}  // namespace
}  // namespace pipewright
