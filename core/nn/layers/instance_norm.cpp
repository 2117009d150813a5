// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class InstanceNorm final : public Layer {
 public:
  explicit InstanceNorm(double eps) : eps_(eps) {}

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    if (input.size(2) * input.size(3) < 2)
      throw Error(ErrorKind::Experiment,
                  concat("instance norm of layer '", name(),
                         "' has one value per channel to normalise; it needs larger images"));
    if (input.is_meta()) {
      const at::Tensor statistics = at::empty({2, input.size(0), input.size(1)}, input.options());
      const bool narrow = at_least_float(input) != input.scalar_type();
      return made_on_meta({input}, at::empty_like(input), {input, statistics}, narrow ? 3 : 1);
    }
    constexpr double kNoMomentum = 0;
    return at::instance_norm(input.to(at_least_float(input)), {}, {}, {}, {},
                             /*use_input_stats=*/true, kNoMomentum, eps_, /*cudnn_enabled=*/true)
        .to(input.scalar_type());
  }

 private:
  double eps_;
};

}  // namespace

LayerPtr instance_norm(double eps) {
  return std::make_shared<InstanceNorm>(eps);
}

}  // namespace pipewright
