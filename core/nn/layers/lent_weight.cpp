// SPDX-License-Identifier: Apache-2.0
/// One parameter that two layers read: it belongs to the first, which pushes it as a skip tensor,
/// and the second pops it.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/nn/lender.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// A layer with one of its parameters named.
class OfOneParameter : public Composite {
 public:
  OfOneParameter(LayerPtr layer, const std::string& parameter) {
    add(std::move(layer), "");
    check_names();
    const auto all = parts_[0].layer->parameters();
    const auto at = std::ranges::find(all, parameter, &ParameterSpec::name);
    PIPEWRIGHT_CHECK(at != all.end(), "a layer without a parameter '", parameter, "'");
    at_ = at - all.begin();
    const SkipUse own = parts_[0].layer->skips();
    PIPEWRIGHT_CHECK(own.takes + own.looks + own.puts == 0, "a shared weight among other skips");
  }

  void set_name(std::string name) override {
    parts_[0].layer->set_name(name);
    Layer::set_name(std::move(name));
  }
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    PIPEWRIGHT_CHECK(false, "layer '", name(), "' has two tensors at a boundary");
  }

 protected:
  const Layer& inner() const { return *parts_[0].layer; }
  std::ptrdiff_t at_ = 0;  ///< the parameter's position among the layer's
};

class Lending final : public OfOneParameter, public Lender {
 public:
  using OfOneParameter::OfOneParameter;

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    Tensors outputs = inner().forward_all(inputs, parameters, buffers, pass);
    outputs.push_back(parameters[lent_parameter()]);
    return outputs;
  }
  std::size_t lent_parameter() const override { return static_cast<std::size_t>(at_); }
  SkipUse skips() const override {
    const std::vector<std::int64_t> shape = inner().parameters()[lent_parameter()].shape;
    return {
        .puts = 1,
        .lent = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies())};
  }
};

class Borrowing final : public OfOneParameter {
 public:
  using OfOneParameter::OfOneParameter;

  std::vector<ParameterSpec> parameters() const override {
    auto own = inner().parameters();
    own.erase(own.begin() + at_);
    return own;
  }
  /// The weight is no leaf of the stage, so a product with it is none that the stage could add.
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() > 1, "layer '", name(), "': no weight was lent");
    Tensors values = inputs;
    std::vector<at::Tensor> all(parameters.begin(), parameters.end());
    all.insert(all.begin() + at_, values.pop_back_val());
    Pass without_sums = pass;
    without_sums.sums = nullptr;
    return inner().forward_all(values, all, buffers, without_sums);
  }
  SkipUse skips() const override { return {.takes = 1, .borrows = true}; }
};

class Copy final : public OfOneParameter, public Lender {
 public:
  using OfOneParameter::OfOneParameter;

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    return inner().forward(input, parameters, buffers, pass);
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    return inner().forward_all(inputs, parameters, buffers, pass);
  }
  std::size_t lent_parameter() const override { return static_cast<std::size_t>(at_); }
};

}  // namespace

LayerPtr lend(LayerPtr layer, const std::string& parameter) {
  return std::make_shared<Lending>(std::move(layer), parameter);
}

LayerPtr borrow(LayerPtr layer, const std::string& parameter) {
  return std::make_shared<Borrowing>(std::move(layer), parameter);
}

LayerPtr tied(Tie tie, bool first, LayerPtr layer, const std::string& parameter) {
  if (tie == Tie::Same) return (first ? lend : borrow)(std::move(layer), parameter);
  if (tie == Tie::Late) return std::make_shared<Copy>(std::move(layer), parameter);
  return layer;
}

Tie read_tie(Options& options) {
  const std::string tie = options.choice(
      "tie", {"none", "start", "same", "late"}, "none",
      "What the token embedding and the output share. none: nothing. start: they are equal when "
      "the training starts, and then each has its own updates. same: they are one tensor, which "
      "belongs to the first stage: it sends the weights that its forward has read to the last, "
      "which sends their gradient back. late: each stage has a copy and reads its newest; each "
      "applies its own gradient at once and the other's when the schedule has brought it.");
  if (tie == "same") return Tie::Same;
  return tie == "late" ? Tie::Late : tie == "start" ? Tie::Start : Tie::None;
}

}  // namespace pipewright
