// SPDX-License-Identifier: Apache-2.0
/// Replaces the matrices [a, b] of the last two dimensions by their best approximation of rank r,
/// from the singular value decomposition U·S·Vᵀ.
///
/// Payload (low_rank.h): U·S of all matrices, [matrices, a, r], then Vᵀ, [matrices, r, b].
#include "core/codecs/codec.h"
#include "core/codecs/low_rank.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class SvdCoder final : public Coder {
 public:
  explicit SvdCoder(std::int64_t rank) : rank_(rank) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    if (goes_raw(x)) return;
    const auto m = LowRank::of_last_dimensions(x.sizes(), rank_);
    if (m.as_it_is()) {
      m.values_of(out.payload(m.bytes())).copy_(x.view({-1}));
      return;
    }
    at::Tensor matrices = x.view({m.count, m.a, m.b});
    if (!x.is_cpu()) matrices = matrices.nan_to_num(0, 0, 0);  // SVD needs finite values
    const auto [u, s, vt] = at::linalg_svd(matrices, false);
    at::Tensor left = u.narrow(2, 0, m.rank) * s.narrow(1, 0, m.rank).unsqueeze(1);
    if (goes_raw(left)) return;  // the values are so large that their squares overflow
    if (!x.is_cpu()) left = left + poison(x);
    const at::Tensor payload = out.payload(m.bytes());
    m.left_of(payload).copy_(left);
    m.right_of(payload).view({m.count, m.rank, m.b}).copy_(vt.narrow(1, 0, m.rank));
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const auto m = LowRank::of_last_dimensions(sizes, rank_);
    check_bytes(payload, m.bytes());
    if (m.as_it_is()) return m.values_of(payload).clone().view(sizes);
    return at::bmm(m.left_of(payload), m.right_of(payload).view({m.count, m.rank, m.b}))
        .view(sizes);
  }

 private:
  std::int64_t rank_;
};

class Svd final : public Codec {
 public:
  explicit Svd(Options& options)
      : rank_(options.integer("rank", 8,
                              "Rank: the number of singular values that are kept of a matrix.",
                              kPositive)) {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<SvdCoder>(rank_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return LowRank::of_last_dimensions(sizes, rank_).bytes();
  }

 private:
  std::int64_t rank_;
};

PIPEWRIGHT_CODEC(
    svd, Svd,
    "The best low-rank approximation of the last two dimensions (singular value decomposition).");

}  // namespace
}  // namespace pipewright
