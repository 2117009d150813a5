// SPDX-License-Identifier: Apache-2.0
/// Sends the k values of largest magnitude and their positions; the others arrive as 0 (Aji and
/// Heafield, 2017; Stich et al., 2018). Among equal magnitudes the first are chosen, so that all
/// machines choose the same. With error feedback the omitted values are added to later tensors.
///
/// Payload: the k values, float32, in tensor order; then their positions, 4 bytes each, or one bit
/// for each value of the tensor if that takes fewer bytes.
#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/codecs/codec.h"
#include "core/codecs/error_feedback.h"
#include "core/codecs/loops/bit_tensors.h"
#include "core/codecs/loops/bits.h"
#include "core/codecs/loops/sparse_loops.h"
#include "core/codecs/payload.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

struct TopKSettings {
  double fraction;
  Feedback feedback;
  bool mask_gradient;
};

constexpr double kRounding = 1e-12;  // 0.29 × 100 is 28.999999999999996, and means 29

/// The layout of a payload that holds k of n values.
struct Layout {
  Layout(std::int64_t values, double fraction)
      : n(values),
        k(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(fraction * static_cast<double>(n) * (1 + kRounding)),
            std::min<std::int64_t>(n, 1), n)),
        mapped(packed_bytes(n, 1) < 4 * k || n > (std::int64_t{1} << 31)) {}

  std::int64_t bytes() const { return 4 * k + where_bytes(); }
  std::int64_t where_bytes() const { return mapped ? packed_bytes(n, 1) : 4 * k; }
  at::Tensor values(const at::Tensor& payload) const { return floats_of(payload, 0, k); }
  at::Tensor where(const at::Tensor& payload) const {
    return payload.narrow(0, 4 * k, where_bytes());
  }

  std::int64_t n, k;
  bool mapped;  ///< positions are one bit per value
};

std::span<std::uint32_t> positions_of(const at::Tensor& where) {
  return {static_cast<std::uint32_t*>(where.mutable_data_ptr()), where.nbytes() / 4};
}

/// Chooses from v, on a CPU, and writes the payload. Returns false if v has non-finite values.
bool choose(const at::Tensor& v, const Layout& layout, const at::Tensor& payload) {
  if (layout.n == 0) return true;
  const std::span<const float> all = span_of(v);
  const Chosen chosen = choose_largest(all, static_cast<std::size_t>(layout.k));
  if (!chosen.finite) return false;
  const std::span values = span_of(layout.values(payload));
  const at::Tensor where = layout.where(payload);
  if (layout.mapped)
    gather_chosen(all, chosen, values, bytes_from(where, 0));
  else
    gather_chosen(all, chosen, values, positions_of(where));
  return true;
}

/// Chooses on any device. NaN counts as the largest magnitude.
void choose_anywhere(const at::Tensor& v, const Layout& layout, const at::Tensor& payload) {
  if (layout.n == 0) return;
  const at::Tensor flat = v.view({-1}), size = flat.abs().nan_to_num(INFINITY, INFINITY);
  const at::Tensor least = std::get<0>(size.topk(layout.k, 0, true, false)).amin();
  const at::Tensor above = size > least, ties = size == least;
  const at::Tensor chosen =
      above.bitwise_or(ties.bitwise_and(ties.cumsum(0) <= layout.k - above.sum()));
  // Each chosen value's place in the payload; all others share one place behind the last.
  const at::Tensor place = at::where(chosen, chosen.cumsum(0) - 1, layout.k);
  const at::Tensor positions = at::empty({layout.k + 1}, place.options());
  positions.scatter_(0, place, at::arange(layout.n, place.options()));
  const at::Tensor first = positions.narrow(0, 0, layout.k);
  layout.values(payload).copy_(flat.index_select(0, first));
  layout.where(payload).copy_(layout.mapped ? packed(chosen.to(at::kInt), 1)
                                            : first.to(at::kInt).view(at::kByte));
}

/// Scatters the values to their positions: [n], float32, 0 elsewhere. Throws Error{Data} for
/// invalid positions.
at::Tensor put_back(const at::Tensor& values, const at::Tensor& where, const Layout& layout) {
  const at::Tensor x = at::zeros({layout.n}, values.options());
  if (layout.mapped ? scatter(span_of(values), bytes_from(where, 0), span_of(x))
                    : scatter(span_of(values), positions_of(where), span_of(x)))
    return x;
  throw Error(ErrorKind::Data, concat("a compressed message puts ", layout.k, " values where ",
                                      layout.n, " have no such places"));
}

at::Tensor put_back_anywhere(const at::Tensor& values, const at::Tensor& where,
                             const Layout& layout) {
  if (layout.n == 0) return at::zeros({0}, values.options());
  if (layout.mapped) {
    const at::Tensor chosen = unpacked(where, layout.n, 1);
    const at::Tensor place = (chosen.cumsum(0) - 1).clamp_(0, layout.k - 1);
    return at::where(chosen == 1, values.index_select(0, place), 0.0F);
  }
  const at::Tensor places = where.view(at::kInt).to(at::kLong).clamp_(0, layout.n - 1);
  return at::zeros({layout.n}, values.options()).index_copy_(0, places, values);
}

at::Tensor values_of(const at::Tensor& payload, const Layout& layout) {
  const at::Tensor values = layout.values(payload), where = layout.where(payload);
  return payload.is_cpu() ? put_back(values, where, layout)
                          : put_back_anywhere(values, where, layout);
}

/// The mask of a payload: 1 where a value was sent, otherwise 0.
at::Tensor mask_of(const at::Tensor& payload, const Layout& layout) {
  const at::Tensor ones = at::ones({layout.k}, payload.options().dtype(at::kFloat));
  const at::Tensor where = layout.where(payload);
  return payload.is_cpu() ? put_back(ones, where, layout) : put_back_anywhere(ones, where, layout);
}

class TopKCoder final : public Coder {
 public:
  explicit TopKCoder(const TopKSettings& settings)
      : settings_(settings), errors_(settings.feedback) {}

  void encode(const at::Tensor& x, const CodecCall& call, FrameBuilder& out) override {
    const Layout layout(x.numel(), settings_.fraction);
    const at::Tensor v = errors_.corrected(x, call), payload = out.payload(layout.bytes());
    if (!x.is_cpu())
      choose_anywhere(v, layout, payload);
    else if (!choose(v, layout, payload))
      return out.leave_raw();
    if (errors_.active(x, call)) errors_.keep(v - values_of(payload, layout).view(x.sizes()), call);
    if (settings_.mask_gradient && call.training && !call.backward && call.gradients > 0)
      masks_[key(call)] = {mask_of(payload, layout).to(at::kBool).view(x.sizes()), call.gradients};
  }

  at::Tensor decode(const at::Tensor& payload, at::IntArrayRef sizes, const CodecCall&) override {
    const Layout layout(c10::multiply_integers(sizes), settings_.fraction);
    check_bytes(payload, layout.bytes());
    return values_of(payload, layout).view(sizes);
  }

  at::Tensor through(const at::Tensor& gradient, const CodecCall& call) override {
    const auto mask = masks_.find(key(call));
    if (mask == masks_.end()) return gradient;  // it was sent raw, or masks are off
    const at::Tensor masked =
        at::where(mask->second.sent, gradient, at::zeros({}, gradient.options()));
    if (--mask->second.gradients == 0) masks_.erase(mask);
    return masked;
  }

  NamedTensors state() const override { return errors_.state(); }
  void restore(const NamedTensors& state) override { errors_.restore(state); }

 private:
  using Key = std::tuple<int, int, std::int64_t>;  ///< identifies a micro-batch
  static Key key(const CodecCall& call) { return {call.epoch, call.minibatch, call.first_sample}; }
  struct Mask {
    at::Tensor sent;    ///< kBool, of the tensor's sizes
    int gradients = 0;  ///< that are still to come
  };

  const TopKSettings& settings_;
  ErrorFeedback errors_;
  std::map<Key, Mask> masks_;  ///< of micro-batches whose backward is outstanding
};

class TopK final : public Codec {
 public:
  explicit TopK(Options& options)
      : settings_{options.number("fraction", 0.1,
                                 "Fraction of the values that is sent; at least one value is.",
                                 kFraction),
                  feedback_of(options),
                  options.flag("mask_gradient", false,
                               "Whether values that were not sent get no gradient; false: all get "
                               "theirs.")} {}
  std::unique_ptr<Coder> coder() const override { return std::make_unique<TopKCoder>(settings_); }
  std::optional<std::int64_t> payload_bytes(at::IntArrayRef sizes) const override {
    return Layout(c10::multiply_integers(sizes), settings_.fraction).bytes();
  }
  bool by_sample() const override { return settings_.feedback == Feedback::Sample; }

 private:
  TopKSettings settings_;
};

PIPEWRIGHT_CODEC(top_k, TopK, "The largest values and their positions; the rest is 0.");

}  // namespace
}  // namespace pipewright
