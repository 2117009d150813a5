// SPDX-License-Identifier: Apache-2.0
/// LSTM layers (Hochreiter and Schmidhuber, 1997), equal to torch.nn.LSTM with batch_first.
#include <cmath>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::size_t kParameters = 4;  // per direction

std::vector<ParameterSpec> direction_parameters(std::int64_t in, std::int64_t hidden,
                                                const std::string& suffix) {
  const Initializer uniform{Initializer::Kind::Uniform, 1 / std::sqrt(static_cast<double>(hidden))};
  return {{"weight_ih_l0" + suffix, {4 * hidden, in}, uniform},
          {"weight_hh_l0" + suffix, {4 * hidden, hidden}, uniform},
          {"bias_ih_l0" + suffix, {4 * hidden}, uniform},
          {"bias_hh_l0" + suffix, {4 * hidden}, uniform}};
}

/// Hidden and cell state, [n, hidden] each.
struct State {
  at::Tensor h, c;
};

State zero_state(const at::Tensor& x, std::int64_t hidden) {
  const at::Tensor zeros = at::zeros({x.size(0), hidden}, x.options());
  return {zeros, zeros};
}

/// Runs one linear and one cell per step. cuDNN's LSTM would save a packed copy of the forward's
/// weights for its backward, although other weights may be installed by then; these operations use
/// the installed ones.
at::Tensor cell_by_cell(const at::Tensor& x, std::span<const at::Tensor> w, State& state) {
  const at::Tensor gates = at::linear(x.transpose(0, 1), w[0]);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& at_step : gates.unbind()) {
    const auto [h, c, workspace] =
        at::_thnn_fused_lstm_cell(at_step, at::linear(state.h, w[1]), state.c, w[2], w[3]);
    state = {h, c};
    outputs.push_back(h);
  }
  return at::stack(outputs, 1);
}

/// The output of one direction on the meta device. The backward of cell_by_cell() saves the input
/// and, for each step, the four gates, the cell and the output; oneDNN's LSTM saves more. Its
/// operators are those of cell_by_cell(): a copy of the transposed input and its product, a product
/// and a cell for each step, and the stack.
at::Tensor on_meta(const at::Tensor& x, std::span<const at::Tensor> w, std::int64_t hidden) {
  const std::int64_t rows = x.size(0) * x.size(1);
  count_multiply_adds(static_cast<double>(rows) *
                      static_cast<double>((x.size(2) + hidden) * 4 * hidden));
  std::vector<at::Tensor> inputs{x};
  inputs.insert(inputs.end(), w.begin(), w.end());
  const int copies = x.transpose(0, 1).is_contiguous() ? 0 : 1;
  const at::Tensor y = at::empty({x.size(0), x.size(1), hidden}, x.options());
  return made_on_meta(inputs, y, {at::empty_like(x), at::empty({rows, 6 * hidden}, x.options())},
                      copies + 1 + 2 * x.size(1) + 1);
}

/// Maps [n, T, in] to [n, T, hidden], starting from `state`, which receives the state after the
/// last step.
at::Tensor run(const at::Tensor& x, std::span<const at::Tensor> w, State& state, bool training) {
  if (x.is_meta()) return on_meta(x, w, state.h.size(1));
  if (x.is_cuda()) return cell_by_cell(x, w, state);
  const auto [y, h, c] =
      at::lstm(x, {state.h.unsqueeze(0), state.c.unsqueeze(0)}, at::TensorList(w.data(), w.size()),
               /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0, training,
               /*bidirectional=*/false, /*batch_first=*/true);
  state = {h.squeeze(0), c.squeeze(0)};
  return y;
}

class Lstm final : public Layer, public Incremental {
 public:
  Lstm(std::int64_t in, std::int64_t hidden) : in_(in), hidden_(hidden) {
    PIPEWRIGHT_CHECK(in > 0 && hidden > 0, "LSTM ", in, " to ", hidden);
  }

  std::vector<ParameterSpec> parameters() const override {
    return direction_parameters(in_, hidden_, "");
  }

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor>, const Pass& pass) const override {
    State state = zero_state(input, hidden_);
    return run(input, parameters, state, pass.training);
  }

  Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                Carried& carried) const override {
    State state = carried.tensors.empty() ? zero_state(inputs[0], hidden_)
                                          : State{carried.tensors[0], carried.tensors[1]};
    Tensors outputs = inputs;
    outputs[0] = run(inputs[0], parameters, state, /*training=*/false);
    carried.tensors = {state.h, state.c};
    return outputs;
  }

 private:
  std::int64_t in_, hidden_;
};

/// Reverses the first lengths[i] tokens of row i and leaves the others in place. It is its own
/// inverse.
at::Tensor reversed(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor place = at::arange(x.size(1), lengths.options()).unsqueeze(0);
  const at::Tensor length = lengths.unsqueeze(1);
  const at::Tensor from = at::where(place < length, length - 1 - place, place);
  return x.gather(1, from.unsqueeze(2).expand(x.sizes()));
}

class BidirectionalLstm final : public BoundaryLayer {
 public:
  BidirectionalLstm(std::int64_t in, std::int64_t hidden) : in_(in), hidden_(hidden) {
    PIPEWRIGHT_CHECK(in > 0 && hidden > 0, "bidirectional LSTM ", in, " to ", hidden);
  }

  std::vector<ParameterSpec> parameters() const override {
    auto specs = direction_parameters(in_, hidden_, "");
    for (auto& spec : direction_parameters(in_, hidden_, "_reverse"))
      specs.push_back(std::move(spec));
    return specs;
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor>, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() > 1, "layer '", name(), "' needs the lengths too");
    Tensors outputs = inputs;
    outputs[0] = both_directions(inputs[0], inputs[1], parameters, pass.training);
    return outputs;
  }

 private:
  /// Outputs at padding are masked, so packed sequences would only save time.
  at::Tensor both_directions(const at::Tensor& x, const at::Tensor& lengths,
                             std::span<const at::Tensor> parameters, bool training) const {
    if (x.is_meta())
      return at::cat({on_meta(x, parameters.first(kParameters), hidden_),
                      on_meta(x, parameters.subspan(kParameters), hidden_)},
                     2);
    State forth = zero_state(x, hidden_), back = forth;
    const at::Tensor y = at::cat(
        {run(x, parameters.first(kParameters), forth, training),
         reversed(run(reversed(x, lengths), parameters.subspan(kParameters), back, training),
                  lengths)},
        2);
    const at::Tensor place = at::arange(x.size(1), lengths.options()).unsqueeze(0);
    return y.masked_fill((place >= lengths.unsqueeze(1)).unsqueeze(2), 0);
  }

  std::int64_t in_, hidden_;
};

}  // namespace

LayerPtr lstm(std::int64_t in, std::int64_t hidden) {
  return std::make_shared<Lstm>(in, hidden);
}

LayerPtr bidirectional_lstm(std::int64_t in, std::int64_t hidden) {
  return std::make_shared<BidirectionalLstm>(in, hidden);
}

}  // namespace pipewright
