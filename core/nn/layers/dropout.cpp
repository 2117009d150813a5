// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

/// Sets mask[i] to `scale` if element first + i of the stream is at least `threshold`, else to 0.
/// Four elements share a block of the stream; only the first and last elements need not fill a
/// block.
template <class T>
void fill_mask(T* mask, std::uint64_t count, std::uint64_t first, const RandomStream& stream,
               std::uint64_t threshold, T scale) {
  const T values[] = {0, scale};  // a table, since a branch on random bits is mispredicted
  const auto kept = [&](std::uint32_t word) { return values[word >= threshold]; };
  std::uint64_t i = 0;
  for (; i < count && (first + i) % 4 != 0; ++i) mask[i] = kept(stream.bits(first + i));
  for (; i + 4 <= count; i += 4) {
    const auto words = stream.block((first + i) / 4);
    for (std::size_t j = 0; j < 4; ++j) mask[i + j] = kept(words[j]);
  }
  for (; i < count; ++i) mask[i] = kept(stream.bits(first + i));
}

enum class Unit : std::uint8_t { Element, Channel };  ///< what is dropped or kept as one

class Dropout final : public Layer {
 public:
  Dropout(double probability, Unit unit)
      : unit_(unit),
        probability_(probability),
        threshold_(static_cast<std::uint64_t>(std::llround(probability * 0x1p32))),
        scale_(probability < 1 ? 1 / (1 - probability) : 0) {
    PIPEWRIGHT_CHECK(probability >= 0 && probability <= 1, "dropout of ", probability);
  }

  void set_name(std::string name) override {
    name_hash_ = stable_hash(name);
    Layer::set_name(std::move(name));
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass& pass) const override {
    if (!pass.training || probability_ == 0) return input;
    const at::Tensor dropped = input * mask(input, pass);
    return narrow(input) ? dropped * scale_ : dropped;
  }

 private:
  /// Whether 1/(1 − p) would be rounded to so few bits that the mean of the outputs is not that of
  /// the inputs. The mask is then of zeros and ones.
  static bool narrow(const at::Tensor& input) { return input.element_size() < 4; }

  at::Tensor mask(const at::Tensor& input, const Pass& pass) const {
    const std::vector<std::int64_t> shape = mask_shape(input);
    if (input.is_meta()) return at::empty(shape, input.options());
    const bool double_precision = input.scalar_type() == at::kDouble;
    const at::Tensor mask =
        at::empty(shape, at::TensorOptions(double_precision ? at::kDouble : at::kFloat));
    if (mask.numel() == 0) return mask.to(input.options());
    const RandomStream stream(pass.seed, "dropout", name_hash_, pass.time());
    if (double_precision)
      fill(mask.mutable_data_ptr<double>(), scale_, mask, pass, stream);
    else
      fill(mask.mutable_data_ptr<float>(), narrow(input) ? 1.0F : static_cast<float>(scale_), mask,
           pass, stream);
    return upload(mask, input.device()).to(input.scalar_type());  // no copy if the type is right
  }

  /// Fills the mask of a micro-batch. In a pass with slices it is a part of that of the whole
  /// sequences, which are the same then: rows [token, …] of [sample, token, width], or [query, keys
  /// so far] of [sample, head, query, key].
  template <class T>
  void fill(T* values, T scale, const at::Tensor& mask, const Pass& pass,
            const RandomStream& stream) const {
    const auto first_sample = static_cast<std::uint64_t>(pass.first_sample);
    const auto count = static_cast<std::uint64_t>(mask.numel());
    const std::uint64_t samples = count_of(mask, 0), each = count / samples;
    if (pass.slices == 1)
      return fill_mask(values, count, first_sample * each, stream, threshold_, scale);
    const std::uint64_t rows = count_of(mask, -2), width = count_of(mask, -1);
    const std::uint64_t all_rows = rows * static_cast<std::uint64_t>(pass.slices),
                        first_row = rows * static_cast<std::uint64_t>(pass.slice),
                        pitch = mask.dim() == 4 ? all_rows : width;
    const std::uint64_t blocks = count / (rows * width),
                        first_block = first_sample * blocks / samples;
    for (std::uint64_t block = 0; block < blocks; ++block)
      for (std::uint64_t row = 0; row < rows; ++row, values += width)
        fill_mask(values, width, ((first_block + block) * all_rows + first_row + row) * pitch,
                  stream, threshold_, scale);
  }

  static std::uint64_t count_of(const at::Tensor& tensor, std::int64_t dimension) {
    return static_cast<std::uint64_t>(tensor.size(dimension));
  }

  std::vector<std::int64_t> mask_shape(const at::Tensor& input) const {
    if (unit_ == Unit::Channel) return {input.size(0), input.size(1), 1, 1};
    return input.sizes().vec();
  }

  Unit unit_;
  double probability_;
  std::uint64_t threshold_;  ///< probability × 2^32
  double scale_;
  std::uint64_t name_hash_ = stable_hash("");
};

}  // namespace

LayerPtr dropout(double probability) {
  return std::make_shared<Dropout>(probability, Unit::Element);
}

LayerPtr channel_dropout(double probability) {
  return std::make_shared<Dropout>(probability, Unit::Channel);
}

}  // namespace pipewright
