// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/bit_tensors.h"

#include "core/codecs/loops/bits.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Reshapes n values to [ceil(n / columns), columns], padded with zeros.
at::Tensor table(const at::Tensor& values, std::int64_t columns) {
  const std::int64_t missing = (columns - values.numel() % columns) % columns;
  return at::constant_pad_nd(values, {0, missing}).view({-1, columns});
}

/// Number of bits by which field j of eight begins before byte k.
constexpr std::int64_t gap(std::int64_t k, std::int64_t j, int bits) {
  return 8 * k - j * bits;
}

at::Tensor shifted(const at::Tensor& x, std::int64_t left) {
  return left >= 0 ? x.bitwise_left_shift(left) : x.bitwise_right_shift(-left);
}

constexpr bool meet(std::int64_t gap, int bits) {
  return gap > -8 && gap < bits;
}

}  // namespace

at::Tensor packed(const at::Tensor& codes, int bits) {
  const std::int64_t n = codes.numel();
  const at::Tensor fields = table(codes, 8);
  const at::Tensor bytes = at::zeros({fields.size(0), bits}, codes.options());
  for (std::int64_t k = 0; k < bits; ++k)
    for (std::int64_t j = 0; j < 8; ++j)
      if (meet(gap(k, j, bits), bits))
        bytes.select(1, k).bitwise_or_(shifted(fields.select(1, j), -gap(k, j, bits)));
  return bytes.bitwise_and_(255).to(at::kByte).view({-1}).narrow(0, 0, packed_bytes(n, bits));
}

at::Tensor unpacked(const at::Tensor& bytes, std::int64_t n, int bits) {
  const at::Tensor columns = table(bytes, bits).to(at::kInt);
  const at::Tensor fields = at::zeros({columns.size(0), 8}, columns.options());
  for (std::int64_t j = 0; j < 8; ++j)
    for (std::int64_t k = 0; k < bits; ++k)
      if (meet(gap(k, j, bits), bits))
        fields.select(1, j).bitwise_or_(shifted(columns.select(1, k), gap(k, j, bits)));
  return fields.bitwise_and_((1 << bits) - 1).view({-1}).narrow(0, 0, n);
}

}  // namespace pipewright
