// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/models/filled.h"

#include <cmath>

#include "core/tensors/torch.h"

namespace pipewright::test {

double hashed(std::uint32_t tensor, std::uint32_t element) {
  std::uint32_t h = 2654435761U * element + 97531U * tensor + 1;
  h ^= h >> 16;
  h *= 0x45d9f3bU;
  h ^= h >> 16;
  return h / 0x1p32;
}

at::Tensor filled(std::uint32_t tensor, at::IntArrayRef shape) {
  at::Tensor values = at::empty(shape, at::kDouble);
  double* const out = values.data_ptr<double>();
  for (std::int64_t k = 0; k < values.numel(); ++k)
    out[k] = 2 * hashed(tensor, static_cast<std::uint32_t>(k)) - 1;
  return values;
}

at::Tensor filled(std::uint32_t tensor, const ParameterSpec& spec) {
  at::Tensor u = filled(tensor, spec.shape);
  if (spec.shape.size() > 1)
    u *= std::sqrt(6.0 * static_cast<double>(spec.shape[0]) / static_cast<double>(u.numel()));
  else if (spec.name.ends_with("bias"))
    u *= 0.1;
  else
    u = 1 + 0.1 * u;
  return u;
}

}  // namespace pipewright::test
