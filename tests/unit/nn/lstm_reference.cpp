// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nn/lstm_reference.h"

#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_reference.h"

namespace pipewright::test {
namespace {

at::Tensor sigmoid_reference(const at::Tensor& x) {
  return 1 / (1 + (-x).exp());
}

at::Tensor tanh_reference(const at::Tensor& x) {
  return 1 - 2 / ((2 * x).exp() + 1);
}

std::vector<at::Tensor> half(const std::vector<at::Tensor>& parameters, bool second) {
  return second ? std::vector<at::Tensor>(parameters.begin() + 4, parameters.end())
                : std::vector<at::Tensor>(parameters.begin(), parameters.begin() + 4);
}

}  // namespace

LstmReference::LstmReference(const at::Tensor& x, const std::vector<at::Tensor>& p) : x_(x) {
  const std::int64_t hidden = p[1].size(1);
  h_.push_back(at::zeros({x.size(0), hidden}, x.options()));
  c_.push_back(h_[0]);
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    const at::Tensor z = linear_reference(x.select(1, t).contiguous(), p[0], p[2]) +
                         linear_reference(h_.back(), p[1], p[3]);
    const auto gate = [&](std::int64_t which) { return z.narrow(1, which * hidden, hidden); };
    Step step{.i = sigmoid_reference(gate(0)),
              .f = sigmoid_reference(gate(1)),
              .g = tanh_reference(gate(2)),
              .o = sigmoid_reference(gate(3)),
              .c = {}};
    step.c = step.f * c_.back() + step.i * step.g;
    c_.push_back(step.c);
    h_.push_back(step.o * tanh_reference(step.c));
    steps_.push_back(step);
  }
}

at::Tensor LstmReference::output() const {
  return at::stack(std::vector<at::Tensor>(h_.begin() + 1, h_.end()), 1);
}

std::vector<at::Tensor> LstmReference::gradients(const at::Tensor& g,
                                                 const std::vector<at::Tensor>& backward) const {
  at::Tensor gx = at::zeros_like(x_), gh = at::zeros_like(h_[0]), gc = gh;
  at::Tensor g_in = at::zeros_like(backward[0]), g_hidden = at::zeros_like(backward[1]);
  at::Tensor g_bias = at::zeros_like(backward[2]);
  for (std::size_t t = steps_.size(); t-- > 0;) {
    const Step& s = steps_[t];
    const auto at_time = static_cast<std::int64_t>(t);
    const at::Tensor tanh_c = tanh_reference(s.c);
    gh = gh + g.select(1, at_time);
    gc = gc + gh * s.o * (1 - tanh_c * tanh_c);
    const at::Tensor gz = at::cat({gc * s.g * s.i * (1 - s.i), gc * c_[t] * s.f * (1 - s.f),
                                   gc * s.i * (1 - s.g * s.g), gh * tanh_c * s.o * (1 - s.o)},
                                  1);
    gc = gc * s.f;
    g_in += product_reference(gz.t(), x_.select(1, at_time).contiguous());
    g_hidden += product_reference(gz.t(), h_[t]);
    g_bias += gz.sum(0);
    gx.select(1, at_time).copy_(product_reference(gz, backward[0]));
    gh = product_reference(gz, backward[1]);
  }
  return {gx, g_in, g_hidden, g_bias, g_bias};
}

BidirectionalLstmReference::BidirectionalLstmReference(const at::Tensor& x,
                                                       const std::vector<std::int64_t>& lengths,
                                                       const std::vector<at::Tensor>& parameters)
    : x_(x), lengths_(lengths) {
  const std::int64_t hidden = parameters[1].size(1);
  output_ = at::zeros({x.size(0), x.size(1), 2 * hidden}, x.options());
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const auto sample = static_cast<std::int64_t>(s);
    const at::Tensor own = x.narrow(0, sample, 1).narrow(1, 0, lengths[s]);
    forth_.emplace_back(own, half(parameters, false));
    back_.emplace_back(own.flip({1}), half(parameters, true));
    output_.narrow(0, sample, 1)
        .narrow(1, 0, lengths[s])
        .copy_(at::cat({forth_[s].output(), back_[s].output().flip({1})}, 2));
  }
}

std::vector<at::Tensor> BidirectionalLstmReference::gradients(
    const at::Tensor& g, const std::vector<at::Tensor>& backward) const {
  const std::int64_t hidden = backward[1].size(1);
  std::vector<at::Tensor> all{at::zeros_like(x_)};
  for (const at::Tensor& parameter : backward) all.push_back(at::zeros_like(parameter));
  for (std::size_t s = 0; s < lengths_.size(); ++s) {
    const auto sample = static_cast<std::int64_t>(s);
    const at::Tensor own = g.narrow(0, sample, 1).narrow(1, 0, lengths_[s]);
    const auto forth = forth_[s].gradients(own.narrow(2, 0, hidden), half(backward, false));
    const auto back =
        back_[s].gradients(own.narrow(2, hidden, hidden).flip({1}), half(backward, true));
    all[0].narrow(0, sample, 1).narrow(1, 0, lengths_[s]).copy_(forth[0] + back[0].flip({1}));
    for (std::size_t p = 0; p < 4; ++p) {
      all[1 + p] += forth[1 + p];
      all[5 + p] += back[1 + p];
    }
  }
  return all;
}

}  // namespace pipewright::test
