// SPDX-License-Identifier: Apache-2.0
/// A codebook of 2^b values is fitted to every tensor by one-dimensional Lloyd's algorithm (1982),
/// which starts from evenly spaced quantiles and runs a fixed number of rounds. A value is replaced
/// by the nearest codebook entry; in a tie, by the lower one. The values are sorted once; a round
/// then costs one binary search per boundary, as sums between boundaries come from prefix sums.
///
/// Payload: the codebook in ascending order, float32, then b bits per value.
#include "core/codecs/codec.h"
#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

struct KMeansSettings {
  int bits;
  std::int64_t rounds;

  std::int64_t book() const { return std::int64_t{1} << bits; }
  std::int64_t bytes(std::int64_t n) const {
    return n == 0 ? 0 : 4 * book() + packed_bytes(n, bits);
  }
};

/// The boundaries [book − 1]: values above boundary j belong to entry j + 1 or a later one.
at::Tensor boundaries(const at::Tensor& book) {
  const std::int64_t last = book.numel() - 1;
  return book.narrow(0, 0, last) / 2 + book.narrow(0, 1, last) / 2;
}

/// The quantiles (j + ½)/size of sorted values, j = 0 … size − 1.
at::Tensor quantiles(const at::Tensor& sorted, std::int64_t size) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t j = 0; j < size; ++j)
    ranks.push_back((2 * j + 1) * sorted.numel() / (2 * size));
  return sorted.index_select(0, upload(at::tensor(ranks, at::kLong), sorted.device()));
}

at::Tensor fitted_book(const at::Tensor& x, const KMeansSettings& settings) {
  const std::int64_t n = x.numel(), size = settings.book();
  const at::Tensor sorted = std::get<0>(x.sort());
  const at::Tensor totals = at::constant_pad_nd(sorted.cumsum(0, at::kDouble), {1, 0});
  at::Tensor book = quantiles(sorted, size);
  for (std::int64_t round = 0; round < settings.rounds; ++round) {
    const at::Tensor inner = at::searchsorted(sorted, boundaries(book), false, true);
    const at::Tensor ends = at::constant_pad_nd(at::constant_pad_nd(inner, {1, 0}), {0, 1}, n);
    const at::Tensor upto = totals.index_select(0, ends);
    const at::Tensor members = ends.narrow(0, 1, size) - ends.narrow(0, 0, size);
    const at::Tensor sums = upto.narrow(0, 1, size) - upto.narrow(0, 0, size);
    book = at::where(members > 0, (sums / members).to(at::kFloat), book);
  }
  return book;
}

class KMeansCoder final : public Coder {
 public:
  explicit KMeansCoder(const KMeansSettings& settings) : settings_(settings) {}

  void encode(const at::Tensor& x, const CodecCall&, FrameBuilder& out) override {
    if (goes_raw(x)) return;
    const at::Tensor payload = out.payload(settings_.bytes(x.numel())), values = x.view({-1});
    if (x.numel() == 0) return;
    at::Tensor book = fitted_book(values, settings_);
    if (!x.is_cpu()) book = book + poison(x);
    floats_of(payload, 0, settings_.book()).copy_(book);
    codes_of(payload, x.numel())
        .copy_(packed(at::bucketize(values, boundaries(book), true), settings_.bits));
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const std::int64_t n = c10::multiply_integers(sizes);
    check_bytes(payload, settings_.bytes(n));
    if (n == 0) return at::empty(sizes, payload.options().dtype(at::kFloat));
    return floats_of(payload, 0, settings_.book())
        .index_select(0, unpacked(codes_of(payload, n), n, settings_.bits))
        .view(sizes);
  }

 private:
  at::Tensor codes_of(const at::Tensor& payload, std::int64_t n) const {
    return payload.narrow(0, 4 * settings_.book(), packed_bytes(n, settings_.bits));
  }

  const KMeansSettings& settings_;
};

class KMeans final : public Codec {
 public:
  explicit KMeans(Options& options)
      : settings_{
            static_cast<int>(options.integer(
                "bits", 4, "Bits per value; the codebook has 2^bits values.", {1, 12})),
            options.integer("rounds", 10, "Number of rounds of Lloyd's algorithm.", {0, 1000})} {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<KMeansCoder>(settings_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return settings_.bytes(c10::multiply_integers(sizes));
  }

 private:
  KMeansSettings settings_;
};

PIPEWRIGHT_CODEC(k_means, KMeans, "A codebook of 2^bits values, fitted to every tensor.");

}  // namespace
}  // namespace pipewright
