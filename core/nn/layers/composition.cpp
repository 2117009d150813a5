// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Base of the composites whose children each have a name.
class Children : public Composite {
 public:
  explicit Children(std::vector<NamedLayer> children) {
    for (auto& [child_name, layer] : children)
      if (child_name.empty())
        add(std::move(layer), "", "." + std::to_string(parts_.size()));
      else
        add(std::move(layer), child_name + ".");
    check_names();
  }
};

class Sequence final : public Children {
 public:
  using Children::Children;

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    Tensors x = inputs;
    for (const Part& part : parts_) x = part.forward_all(x, parameters, buffers, pass);
    return x;
  }

  /// Combines the children's uses: a child first pops and peeks at what earlier children have
  /// pushed.
  SkipUse skips() const override {
    SkipUse all;
    int deepest = 0;  // depth of the tensors below the sequence's own that it reads
    for (const Part& part : parts_) {
      const SkipUse own = part.layer->skips();
      deepest = std::max(deepest, all.takes + own.takes + own.looks - all.puts);
      const int inside = std::min(own.takes, all.puts);
      all.takes += own.takes - inside;
      all.puts -= inside;
      if (own.puts > 0) all.gradients = own.gradients || (all.puts > 0 && all.gradients);
      all.puts += own.puts;
    }
    all.looks = std::max(0, deepest - all.takes);
    return all;
  }
};

class Concatenation final : public Children {
 public:
  using Children::Children;

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    std::vector<at::Tensor> outputs;
    for (const Part& part : parts_)
      outputs.push_back(part.forward(input, parameters, buffers, pass));
    return at::cat(outputs, 1);
  }
};

/// Adds or multiplies what its children give.
class Combined final : public Children {
 public:
  using Operator = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
  Combined(std::vector<NamedLayer> children, Operator combine)
      : Children(std::move(children)), combine_(combine) {}

  at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                     std::span<at::Tensor> buffers, const Pass& pass) const override {
    at::Tensor all;
    for (const Part& part : parts_) {
      const at::Tensor one = part.forward(input, parameters, buffers, pass);
      all = all.defined() ? combine_(all, one) : one;
    }
    return all;
  }

 private:
  Operator combine_;
};

class Residual final : public Composite {
 public:
  Residual(LayerPtr body, LayerPtr shortcut, Activation activation) : activation_(activation) {
    add(std::move(body), "");
    if (shortcut) add(std::move(shortcut), "shortcut.");
    check_names();
  }

  /// The body receives all tensors, the shortcut only the first.
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    Tensors outputs = parts_[0].forward_all(inputs, parameters, buffers, pass);
    outputs[0] = activate_in_place(
        activation_,
        at::add(outputs[0], parts_.size() > 1
                                ? parts_[1].forward(inputs[0], parameters, buffers, pass)
                                : inputs[0]));
    return outputs;
  }

  SkipUse skips() const override { return parts_[0].layer->skips(); }

 private:
  Activation activation_;
};

}  // namespace

LayerPtr sequence(std::vector<NamedLayer> children) {
  return std::make_shared<Sequence>(std::move(children));
}

LayerPtr concatenate(std::vector<NamedLayer> branches) {
  PIPEWRIGHT_CHECK(!branches.empty(), "a concatenation of nothing");
  for (auto& [name, layer] : branches)
    if (!layer) layer = sequence({});
  return std::make_shared<Concatenation>(std::move(branches));
}

LayerPtr sum_of(std::vector<NamedLayer> children) {
  return std::make_shared<Combined>(
      std::move(children), [](const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); });
}

LayerPtr product_of(std::vector<NamedLayer> children) {
  return std::make_shared<Combined>(
      std::move(children), [](const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); });
}

LayerPtr residual(LayerPtr body, LayerPtr shortcut, Activation activation) {
  return std::make_shared<Residual>(std::move(body), std::move(shortcut), activation);
}

}  // namespace pipewright
