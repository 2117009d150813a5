#include "core/stage/initialize.h"

#include "core/base/random.h"
#include "core/stage/torch.h"

namespace pipewright {

void initialize(at::Tensor parameter, const Initializer& how, std::uint64_t seed,
                const std::string& full_name) {
  const at::NoGradGuard no_grad;
  if (how.kind == Initializer::Kind::Constant) {
    parameter.fill_(how.a);
    return;
  }
  const RandomStream stream(seed, "init", stable_hash(full_name));
  const at::Tensor drawn = at::empty(parameter.sizes(), at::kDouble);
  double* const values = drawn.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < drawn.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    values[i] = how.kind == Initializer::Kind::Uniform ? how.a * (2 * stream.uniform(index) - 1)
                                                       : how.a * stream.normal(index);
  }
  if (how.zero_row >= 0) drawn[how.zero_row].zero_();
  parameter.copy_(drawn);
}

}  // namespace pipewright
