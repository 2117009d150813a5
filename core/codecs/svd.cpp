/// Matrices of the last two dimensions, [a, b], become their best approximation of rank r: U·S and
/// V of the singular value decomposition. A tensor without matrices, or whose factors would be no
/// smaller, goes as it is.
///
/// Payload: U·S of all matrices, [matrices, a, r], then Vᵀ, [matrices, r, b]; float32.
#include <algorithm>

#include "core/codecs/codec.h"
#include "core/codecs/payload.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

struct Matrices {
  Matrices(at::IntArrayRef sizes, std::int64_t most) : values(c10::multiply_integers(sizes)) {
    if (values == 0 || sizes.size() < 2) return;
    a = sizes[sizes.size() - 2];
    b = sizes[sizes.size() - 1];
    count = values / a / b;
    const std::int64_t smaller = std::min({most, a, b});
    if ((a + b) * smaller < a * b) rank = smaller;
  }

  std::int64_t left() const { return count * a * rank; }
  std::int64_t right() const { return count * rank * b; }
  std::int64_t bytes() const { return 4 * (rank == 0 ? values : left() + right()); }

  std::int64_t values, a = 0, b = 0, count = 0;
  std::int64_t rank = 0;  ///< 0: as it is
};

class SvdCoder final : public Coder {
 public:
  explicit SvdCoder(std::int64_t rank) : rank_(rank) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    if (goes_raw(x)) return;
    const Matrices m(x.sizes(), rank_);
    if (m.rank == 0) {
      floats_of(out.payload(m.bytes()), 0, m.values).copy_(x.view({-1}));
      return;
    }
    at::Tensor matrices = x.view({m.count, m.a, m.b});
    if (!x.is_cpu()) matrices = matrices.nan_to_num(0, 0, 0);  // which would not converge
    const auto [u, s, vt] = at::linalg_svd(matrices, false);
    at::Tensor left = u.narrow(2, 0, m.rank) * s.narrow(1, 0, m.rank).unsqueeze(1);
    if (goes_raw(left)) return;  // values so large that their squares are infinite
    if (!x.is_cpu()) left = left + poison(x);
    const at::Tensor payload = out.payload(m.bytes());
    floats_of(payload, 0, m.left()).view({m.count, m.a, m.rank}).copy_(left);
    floats_of(payload, 4 * m.left(), m.right())
        .view({m.count, m.rank, m.b})
        .copy_(vt.narrow(1, 0, m.rank));
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const Matrices m(sizes, rank_);
    check_bytes(payload, m.bytes());
    if (m.rank == 0) return floats_of(payload, 0, m.values).clone().view(sizes);
    return at::bmm(floats_of(payload, 0, m.left()).view({m.count, m.a, m.rank}),
                   floats_of(payload, 4 * m.left(), m.right()).view({m.count, m.rank, m.b}))
        .view(sizes);
  }

 private:
  std::int64_t rank_;
};

class Svd final : public Codec {
 public:
  explicit Svd(Options& options)
      : rank_(options.integer("rank", 8, "Singular values that are kept of a matrix.", kPositive)) {
  }
  std::unique_ptr<Coder> coder() const override { return std::make_unique<SvdCoder>(rank_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return Matrices(sizes, rank_).bytes();
  }

 private:
  std::int64_t rank_;
};

PIPEWRIGHT_CODEC(svd, Svd, "The best approximation of low rank of the last two dimensions.");

}  // namespace
}  // namespace pipewright
