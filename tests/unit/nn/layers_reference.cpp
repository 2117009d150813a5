// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nn/layers_reference.h"

#include <functional>

#include "core/base/random.h"
#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

/// Calls visit(n, o, i, j, c, row, column, u, v) for every product of a convolution.
template <class Visit>
void for_each_product(const ConvolutionReference& conv, const at::Tensor& x, const at::Tensor& w,
                      const at::Tensor& y, const Visit& visit) {
  for (std::int64_t n = 0; n < y.size(0); ++n)
    for (std::int64_t o = 0; o < y.size(1); ++o)
      for (std::int64_t i = 0; i < y.size(2); ++i)
        for (std::int64_t j = 0; j < y.size(3); ++j)
          for (std::int64_t c = 0; c < w.size(1); ++c)
            for (std::int64_t u = 0; u < w.size(2); ++u)
              for (std::int64_t v = 0; v < w.size(3); ++v) {
                const std::int64_t row = i * conv.stride + u - conv.padding;
                const std::int64_t column = j * conv.stride + v - conv.padding;
                if (row >= 0 && row < x.size(2) && column >= 0 && column < x.size(3))
                  visit(n, o, i, j, c, row, column, u, v);
              }
}

at::Tensor per_channel(const at::Tensor& values) {
  return values.view({1, -1, 1, 1});
}

at::Tensor channel_sums(const at::Tensor& x) {
  return x.sum(at::IntArrayRef{0, 2, 3});
}

}  // namespace

at::Tensor ConvolutionReference::forward(const at::Tensor& x, const at::Tensor& w,
                                         const at::Tensor& b) const {
  const auto extent = [&](std::int64_t size, std::int64_t kernel) {
    return (size + 2 * padding - kernel) / stride + 1;
  };
  at::Tensor y =
      at::zeros({x.size(0), w.size(0), extent(x.size(2), w.size(2)), extent(x.size(3), w.size(3))},
                at::kDouble);
  const auto xs = x.accessor<double, 4>(), ws = w.accessor<double, 4>();
  auto ys = y.accessor<double, 4>();
  for_each_product(*this, x, w, y,
                   [&](auto n, auto o, auto i, auto j, auto c, auto row, auto column, auto u,
                       auto v) { ys[n][o][i][j] += xs[n][c][row][column] * ws[o][c][u][v]; });
  return b.defined() ? y + per_channel(b) : y;
}

at::Tensor ConvolutionReference::grad_input(const at::Tensor& g, const at::Tensor& x,
                                            const at::Tensor& w) const {
  at::Tensor gx = at::zeros_like(x);
  const auto gs = g.accessor<double, 4>(), ws = w.accessor<double, 4>();
  auto gxs = gx.accessor<double, 4>();
  for_each_product(*this, x, w, g,
                   [&](auto n, auto o, auto i, auto j, auto c, auto row, auto column, auto u,
                       auto v) { gxs[n][c][row][column] += gs[n][o][i][j] * ws[o][c][u][v]; });
  return gx;
}

at::Tensor ConvolutionReference::grad_weight(const at::Tensor& g, const at::Tensor& x,
                                             const at::Tensor& w) const {
  at::Tensor gw = at::zeros_like(w);
  const auto gs = g.accessor<double, 4>(), xs = x.accessor<double, 4>();
  auto gws = gw.accessor<double, 4>();
  for_each_product(*this, x, w, g,
                   [&](auto n, auto o, auto i, auto j, auto c, auto row, auto column, auto u,
                       auto v) { gws[o][c][u][v] += gs[n][o][i][j] * xs[n][c][row][column]; });
  return gw;
}

BatchNormReference::BatchNormReference(const at::Tensor& x, double eps)
    : count(static_cast<double>(x.numel() / x.size(1))),
      mean(channel_sums(x) / count),
      variance(channel_sums((x - per_channel(mean)).square()) / count),
      inv_std((variance + eps).rsqrt()),
      normalized((x - per_channel(mean)) * per_channel(inv_std)) {}

at::Tensor BatchNormReference::forward(const at::Tensor& weight, const at::Tensor& bias) const {
  return normalized * per_channel(weight) + per_channel(bias);
}

at::Tensor BatchNormReference::grad_input(const at::Tensor& g, const at::Tensor& weight) const {
  const at::Tensor mean_g = channel_sums(g) / count;
  const at::Tensor mean_g_normalized = channel_sums(g * normalized) / count;
  return per_channel(weight * inv_std) *
         (g - per_channel(mean_g) - normalized * per_channel(mean_g_normalized));
}

at::Tensor BatchNormReference::grad_weight(const at::Tensor& g) const {
  return channel_sums(g * normalized);
}

at::Tensor BatchNormReference::grad_bias(const at::Tensor& g) const {
  return channel_sums(g);
}

namespace {

/// Where the maximum of the window of output (i, j) is.
std::pair<std::int64_t, std::int64_t> argmax(const at::TensorAccessor<double, 2>& map,
                                             std::int64_t i, std::int64_t j, std::int64_t kernel,
                                             std::int64_t stride) {
  std::pair<std::int64_t, std::int64_t> best{i * stride, j * stride};
  for (std::int64_t u = 0; u < kernel; ++u)
    for (std::int64_t v = 0; v < kernel; ++v)
      if (map[i * stride + u][j * stride + v] > map[best.first][best.second])
        best = {i * stride + u, j * stride + v};
  return best;
}

void for_each_element(
    const at::Tensor& y,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& visit) {
  for (std::int64_t n = 0; n < y.size(0); ++n)
    for (std::int64_t c = 0; c < y.size(1); ++c)
      for (std::int64_t i = 0; i < y.size(2); ++i)
        for (std::int64_t j = 0; j < y.size(3); ++j) visit(n, c, i, j);
}

struct Bin {
  std::int64_t begin, end;
};
Bin bin(std::int64_t i, std::int64_t count, std::int64_t extent) {
  return {i * extent / count, ((i + 1) * extent + count - 1) / count};
}

}  // namespace

at::Tensor MaxPoolReference::forward(const at::Tensor& x) const {
  at::Tensor y = at::empty(
      {x.size(0), x.size(1), (x.size(2) - kernel) / stride + 1, (x.size(3) - kernel) / stride + 1},
      at::kDouble);
  const auto xs = x.accessor<double, 4>();
  auto ys = y.accessor<double, 4>();
  for_each_element(y, [&](auto n, auto c, auto i, auto j) {
    const auto [row, column] = argmax(xs[n][c], i, j, kernel, stride);
    ys[n][c][i][j] = xs[n][c][row][column];
  });
  return y;
}

at::Tensor MaxPoolReference::grad_input(const at::Tensor& g, const at::Tensor& x) const {
  at::Tensor gx = at::zeros_like(x);
  const auto xs = x.accessor<double, 4>(), gs = g.accessor<double, 4>();
  auto gxs = gx.accessor<double, 4>();
  for_each_element(g, [&](auto n, auto c, auto i, auto j) {
    const auto [row, column] = argmax(xs[n][c], i, j, kernel, stride);
    gxs[n][c][row][column] += gs[n][c][i][j];
  });
  return gx;
}

at::Tensor AveragePoolReference::forward(const at::Tensor& x) const {
  at::Tensor y = at::zeros({x.size(0), x.size(1), size, size}, at::kDouble);
  const auto xs = x.accessor<double, 4>();
  auto ys = y.accessor<double, 4>();
  for_each_element(y, [&](auto n, auto c, auto i, auto j) {
    const Bin rows = bin(i, size, x.size(2)), columns = bin(j, size, x.size(3));
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = columns.begin; column < columns.end; ++column)
        ys[n][c][i][j] += xs[n][c][row][column];
    ys[n][c][i][j] /= static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
  });
  return y;
}

at::Tensor AveragePoolReference::grad_input(const at::Tensor& g, const at::Tensor& x) const {
  at::Tensor gx = at::zeros_like(x);
  const auto gs = g.accessor<double, 4>();
  auto gxs = gx.accessor<double, 4>();
  for_each_element(g, [&](auto n, auto c, auto i, auto j) {
    const Bin rows = bin(i, size, x.size(2)), columns = bin(j, size, x.size(3));
    const auto share = static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = columns.begin; column < columns.end; ++column)
        gxs[n][c][row][column] += gs[n][c][i][j] / share;
  });
  return gx;
}

at::Tensor product_reference(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor c = at::zeros({a.size(0), b.size(1)}, at::kDouble);
  const auto as = a.accessor<double, 2>(), bs = b.accessor<double, 2>();
  auto cs = c.accessor<double, 2>();
  for (std::int64_t i = 0; i < a.size(0); ++i)
    for (std::int64_t j = 0; j < b.size(1); ++j)
      for (std::int64_t k = 0; k < a.size(1); ++k) cs[i][j] += as[i][k] * bs[k][j];
  return c;
}

at::Tensor linear_reference(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return product_reference(x, w.t()) + b;
}

at::Tensor relu_reference(const at::Tensor& x) {
  return at::where(x > 0, x, at::zeros_like(x));
}

at::Tensor relu_backward_reference(const at::Tensor& g, const at::Tensor& y) {
  return at::where(y > 0, g, at::zeros_like(g));
}

at::Tensor dropout_mask_reference(at::IntArrayRef shape, double probability, std::uint64_t seed,
                                  const char* name, int epoch, int minibatch,
                                  std::int64_t first_sample) {
  at::Tensor mask = at::empty(shape, at::kDouble);
  const RandomStream stream(
      seed, "dropout", stable_hash(name),
      (static_cast<std::uint64_t>(epoch) << 32) + static_cast<std::uint64_t>(minibatch));
  const std::int64_t per_sample = mask.numel() / mask.size(0);
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(first_sample * per_sample + i);
    const bool keep = static_cast<double>(stream.bits(index)) >= probability * 0x1p32;
    mask.data_ptr<double>()[i] = keep ? 1 / (1 - probability) : 0;
  }
  return mask;
}

}  // namespace pipewright::test
