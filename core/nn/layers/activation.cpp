// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr double kLeak = 0.01;

/// The backward saves the output for ReLU and tanh, the input for the others.
at::Tensor activated_on_meta(Activation activation, const at::Tensor& x, const at::Tensor& y) {
  const bool output = activation == Activation::Relu || activation == Activation::Tanh;
  return activation == Activation::Identity ? x : made_on_meta({x}, y, {output ? y : x});
}

}  // namespace

at::Tensor activate(Activation activation, const at::Tensor& x) {
  if (activation == Activation::Relu2) return activate(Activation::Relu, x).square();
  if (x.is_meta()) return activated_on_meta(activation, x, at::empty_like(x));
  switch (activation) {
    case Activation::Identity: return x;
    case Activation::Relu: return at::relu(x);
    case Activation::Relu6: return at::hardtanh(x, 0, 6);
    case Activation::LeakyRelu: return at::leaky_relu(x, kLeak);
    case Activation::Tanh: return at::tanh(x);
    case Activation::Gelu: return at::gelu(x);
    case Activation::GeluTanh: return at::gelu(x, "tanh");
    case Activation::Silu: return at::silu(x);
    case Activation::Relu2: break;
  }
  PIPEWRIGHT_CHECK(false, "no such activation");
}

at::Tensor activate_in_place(Activation activation, at::Tensor x) {
  if (x.is_meta() && activation == Activation::Relu6)  // its backward needs x, so autograd copies x
    return made_on_meta({x}, x.variable_data(), {at::empty_like(x)}, 2);
  switch (activation) {
    case Activation::Identity: return x;
    case Activation::Relu: return at::relu_(x);
    case Activation::Relu6: return at::hardtanh_(x, 0, 6);
    case Activation::LeakyRelu: return at::leaky_relu_(x, kLeak);
    case Activation::Tanh: return at::tanh_(x);
    case Activation::Gelu:
    case Activation::GeluTanh:
    case Activation::Silu: return activate(activation, x);  // their backward needs x
    case Activation::Relu2: return at::relu_(x).square();
  }
  PIPEWRIGHT_CHECK(false, "no such activation");
}

LayerPtr activation(Activation kind, bool in_place) {
  return layer_of([=](const at::Tensor& x) {
    return in_place ? activate_in_place(kind, x) : activate(kind, x);
  });
}

}  // namespace pipewright
