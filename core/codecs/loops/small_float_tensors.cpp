// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/loops/small_float_tensors.h"

#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {

at::Tensor small_codes(const at::Tensor& x, SmallFloat format) {
  const SmallRounding r(format);
  const at::Tensor all = x.contiguous().view(at::kInt);
  const at::Tensor bits = all.bitwise_and(0x7fffffff);
  const at::Tensor last = bits.bitwise_right_shift(r.shift).bitwise_and_(1);
  const at::Tensor normal = (bits + r.half + last).bitwise_right_shift_(r.shift).sub_(r.rebias);
  const at::Tensor subnormal =
      (bits.view(at::kFloat) + std::bit_cast<float>(r.unit)).view(at::kInt).sub_(r.unit);
  const at::Tensor code = at::where(bits < r.least_normal, subnormal, normal).clamp_max_(r.top);
  return code.bitwise_or_((all < 0).to(at::kInt).bitwise_left_shift_(31 - r.sign));
}

at::Tensor small_values(const at::Tensor& codes, SmallFloat format) {
  const std::int64_t count = std::int64_t{1} << format.bits();
  const at::Tensor values = at::empty({count}, at::TensorOptions(at::kFloat));
  auto* const value = values.mutable_data_ptr<float>();
  for (std::int64_t code = 0; code < count; ++code)
    value[code] = small_value(static_cast<std::uint32_t>(code), format);
  return upload(values, codes.device()).index_select(0, codes.view({-1})).view(codes.sizes());
}

}  // namespace pipewright
