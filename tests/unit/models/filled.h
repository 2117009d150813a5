/// The formula that fills weights and inputs of the models measured with torchgpipe's own code.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/stage/layer.h"

namespace pipewright::test {

/// Element k of tensor t, in [0, 1).
double hashed(std::uint32_t tensor, std::uint32_t element);
/// In [−1, 1), float64.
at::Tensor filled(std::uint32_t tensor, at::IntArrayRef shape);
/// Of the size that a parameter of that kind has.
at::Tensor filled(std::uint32_t tensor, const ParameterSpec& spec);

}  // namespace pipewright::test
