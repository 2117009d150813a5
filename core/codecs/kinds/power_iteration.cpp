// SPDX-License-Identifier: Apache-2.0
/// A low-rank approximation of each sample by power iteration. A tensor is taken as [B, C, W], W
/// being the product of all later dimensions; a sample X [C, W] becomes Q·Pᵀ with Q [C, r] and P
/// [W, r]:
///
///   each round: Q = X·P, P = Xᵀ·Q; the last one orthonormalises P first and Q in between,
///
/// so that Q·Pᵀ = Q·Qᵀ·X. P starts from that of the previous micro-batch of the same size; the
/// first P is random.
///
/// Payload (low_rank.h): Q of all samples, [B, C, r], then P, [B, W, r].
#include <map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/codecs/codec.h"
#include "core/codecs/low_rank.h"
#include "core/codecs/payload.h"
#include "core/codecs/sample_memory.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

struct PowerSettings {
  std::int64_t rank, rounds;
};

at::Tensor orthonormal(const at::Tensor& x) {
  return std::get<0>(at::linalg_qr(x));
}

at::Tensor random_start(const std::vector<std::int64_t>& sizes, const CodecCall& call,
                        at::Device device) {
  const RandomStream stream(
      call.seed, "power iteration", static_cast<std::uint64_t>(call.edge),
      2 * static_cast<std::uint64_t>(call.tensor) + std::uint64_t{call.backward});
  const at::Tensor start = at::empty(sizes, at::TensorOptions(at::kFloat));
  auto* const value = start.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < start.numel(); ++i)
    value[i] = static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)));
  return upload(start, device);
}

class PowerCoder final : public Coder {
 public:
  explicit PowerCoder(const PowerSettings& settings) : settings_(settings) {}

  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    if (goes_raw(x)) return;
    const auto m = LowRank::of_samples(x.sizes(), settings_.rank);
    if (m.as_it_is()) {
      m.values_of(out.payload(m.bytes())).copy_(x.view({-1}));
      return;
    }
    const at::Tensor matrices = x.view({m.count, m.a, m.b});
    const at::Tensor start = start_of({m.count, m.b, m.rank}, call, x.device());
    at::Tensor p = start, q;
    for (std::int64_t round = 1; round <= settings_.rounds; ++round) {
      const bool last = round == settings_.rounds;
      q = at::bmm(matrices, last ? orthonormal(p) : p);
      if (last) q = orthonormal(q);
      p = at::bmm(matrices.transpose(1, 2), q);
    }
    if (goes_raw(q) || goes_raw(p)) return;  // the values are so large that sums overflow
    const at::Tensor payload = out.payload(m.bytes());
    m.left_of(payload).copy_(q);
    m.right_of(payload).view(p.sizes()).copy_(p);
    if (!call.training) return;
    // A gradient that overflowed must not spoil all later ones.
    starts_[p.sizes().vec()] = x.is_cpu() ? p : at::where(p.isfinite().all(), p, start);
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const auto m = LowRank::of_samples(sizes, settings_.rank);
    check_bytes(payload, m.bytes());
    if (m.as_it_is()) return m.values_of(payload).clone().view(sizes);
    const at::Tensor p = m.right_of(payload).view({m.count, m.b, m.rank});
    return at::bmm(m.left_of(payload), p.transpose(1, 2)).view(sizes);
  }

  NamedTensors state() const override {
    NamedTensors state;
    for (const auto& [sizes, p] : starts_) state.emplace_back("p." + sizes_text(sizes), p);
    return state;
  }

  void restore(const NamedTensors& state) override {
    starts_.clear();
    for (const auto& [name, p] : state) {
      if (p.scalar_type() != at::kFloat || name != "p." + sizes_text(p.sizes()))
        throw Error(ErrorKind::Data, concat("a codec's state has a tensor '", name,
                                            "' of other sizes or not of float32"));
      starts_[p.sizes().vec()] = p.clone();
    }
  }

 private:
  at::Tensor start_of(const std::vector<std::int64_t>& sizes, const CodecCall& call,
                      at::Device device) const {
    const auto found = starts_.find(sizes);
    return found == starts_.end() ? random_start(sizes, call, device) : found->second.to(device);
  }

  const PowerSettings& settings_;
  std::map<std::vector<std::int64_t>, at::Tensor> starts_;
};

class PowerIteration final : public Codec {
 public:
  explicit PowerIteration(Options& options)
      : settings_{options.integer("rank", 4, "Rank of the approximation of a sample.", kPositive),
                  options.integer("rounds", 3,
                                  "Number of rounds of power iteration for each micro-batch.",
                                  {1, 100})} {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<PowerCoder>(settings_); }
  bool evaluates_by_state() const override { return true; }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return LowRank::of_samples(sizes, settings_.rank).bytes();
  }

 private:
  PowerSettings settings_;
};

PIPEWRIGHT_CODEC(
    power_iteration, PowerIteration,
    "Low-rank approximation by power iteration, continued from micro-batch to micro-batch.");

}  // namespace
}  // namespace pipewright
