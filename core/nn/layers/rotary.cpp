// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/rotary.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <bit>
#include <cmath>

#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines,
                  double direction) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor left = x.narrow(-1, 0, half), right = x.narrow(-1, half, half);
  at::Tensor y = at::empty(x.sizes(), x.options());
  at::Tensor up = y.narrow(-1, 0, half), down = y.narrow(-1, half, half);
  at::mul_out(up, left, cosines);
  up.addcmul_(right, sines, -direction);
  at::mul_out(down, right, cosines);
  down.addcmul_(left, sines, direction);
  return y;
}

/// The gradient is rotated back.
struct Rotated : torch::autograd::Function<Rotated> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& cosines, const at::Tensor& sines) {
    context->save_for_backward({cosines, sines});
    return rotate(x, cosines, sines, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (!gradients[0].defined()) return {{}, {}, {}};
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], saved[1], -1), {}, {}};
  }
};

}  // namespace

RotaryTable RotaryTables::of(std::int64_t first, std::int64_t tokens, std::int64_t d,
                             const at::Tensor& like) const {
  if (like.is_meta()) return {};
  const auto rows = [&](const RotaryTable& table) {
    return RotaryTable{table.cosines.narrow(0, first, tokens),
                       table.sines.narrow(0, first, tokens)};
  };
  const Lock lock(mutex_);
  for (const RotaryTable& table : made_)
    if (const at::Tensor& x = table.cosines; x.device() == like.device() &&
                                             x.scalar_type() == like.scalar_type() &&
                                             x.size(0) >= first + tokens && 2 * x.size(1) == d)
      return rows(table);
  const auto positions = std::bit_ceil(static_cast<std::uint64_t>(first + tokens));
  made_.push_back(made(static_cast<std::int64_t>(positions), d, like));
  return rows(made_.back());
}

/// Computes them on the host: the copy to another device ends before streams of other threads use
/// it.
RotaryTable RotaryTables::made(std::int64_t positions, std::int64_t d,
                               const at::Tensor& like) const {
  // They outlive the forward that asks first, which must not take them along when it is offloaded.
  const at::DisableRecordFunctionGuard unseen;
  const auto pairs = std::llround(options_.share * static_cast<double>(d / 2));
  constexpr at::ScalarType wide = at::kDouble;
  const double last = options_.reaches_base ? std::max<double>(1, static_cast<double>(pairs - 1))
                                            : static_cast<double>(pairs);
  const at::Tensor exponents = at::arange(pairs, wide).mul_(-std::log(options_.base) / last);
  const at::Tensor frequencies = at::constant_pad_nd(exponents.exp_(), {0, d / 2 - pairs});
  const at::Tensor angles = at::outer(at::arange(positions, wide), frequencies);
  return {angles.cos().to(like.options()), angles.sin().to(like.options())};
}

at::Tensor rotated(const at::Tensor& x, const RotaryTable& table) {
  constexpr int kOperators = 4;  // of rotate()
  if (x.is_meta()) return made_on_meta({x}, at::empty(x.sizes(), x.options()), {}, kOperators);
  return Rotated::apply(x, table.cosines, table.sines);
}

}  // namespace pipewright
