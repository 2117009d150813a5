// SPDX-License-Identifier: Apache-2.0
#include "core/nn/initialize.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/normal_distribution.h"
#include "core/base/random.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Inverts the distribution function, so each element takes exactly one draw.
double truncated_normal(double uniform) {
  constexpr double kBound = 2;
  const double below = normal_cdf(-kBound), within = 1 - 2 * below;
  return std::clamp(normal_quantile(below + uniform * within), -kBound, kBound);
}

double drawn_value(const Initializer& how, const RandomStream& stream, std::uint64_t index) {
  using Kind = Initializer::Kind;
  switch (how.kind) {
    case Kind::Constant: return how.a;
    case Kind::Uniform: return how.a * (2 * stream.uniform(index) - 1);
    case Kind::Normal: return how.a * stream.normal(index);
    case Kind::TruncatedNormal: return how.a * truncated_normal(stream.uniform(index));
  }
  PIPEWRIGHT_CHECK(false, "no such initialiser");
}

}  // namespace

void initialize(at::Tensor parameter, const Initializer& how, std::uint64_t seed,
                const std::string& full_name) {
  if (parameter.is_meta()) return;
  const at::NoGradGuard no_grad;
  if (how.kind == Initializer::Kind::Constant) {
    parameter.fill_(how.a);
    return;
  }
  const RandomStream stream(seed, "init", stable_hash(full_name));
  const at::Tensor drawn = at::empty(parameter.sizes(), at::kDouble);
  double* const values = drawn.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < drawn.numel(); ++i)
    values[i] = drawn_value(how, stream, static_cast<std::uint64_t>(i));
  if (how.zero_row >= 0) drawn[how.zero_row].zero_();
  parameter.copy_(drawn);
}

}  // namespace pipewright
