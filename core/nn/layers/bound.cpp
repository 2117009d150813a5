// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/custom_function.h>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// With s = 1/√(1 + (x/c)²): y = x s and dy/dx = s³. Only s is kept, the size of the scores of a
/// whole vocabulary. x/c comes first, because x² is too large for float16 from 256 on.
struct Bounded : torch::autograd::Function<Bounded> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double c) {
    const at::Tensor slope = x.div(c).square_().add_(1).rsqrt_();
    context->save_for_backward({slope});
    return x * slope;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return {{}, {}};
    return {context->get_saved_variables()[0].pow(3).mul_(gradients[0]), {}};
  }
};

}  // namespace

LayerPtr bound(double c) {
  PIPEWRIGHT_CHECK(c > 0, "a bound of ", c);
  return layer_of([c](const at::Tensor& x) -> at::Tensor {
    constexpr int kOperators = 5;  // of Bounded's forward
    if (x.is_meta()) return made_on_meta({x}, at::empty_like(x), {at::empty_like(x)}, kOperators);
    return Bounded::apply(x, c);
  });
}

}  // namespace pipewright
