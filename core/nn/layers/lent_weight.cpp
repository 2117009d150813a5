// SPDX-License-Identifier: Apache-2.0
/// Parameters that several layers read. One belongs to the first of them, which pushes it as a skip
/// tensor for the others, or each of them has a copy.
#include <algorithm>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Specs = std::vector<ParameterSpec>;

std::size_t position_of(const Specs& specs, const std::string& name) {
  const auto at = std::ranges::find(specs, name, &ParameterSpec::name);
  PIPEWRIGHT_CHECK(at != specs.end(), "a layer without a parameter '", name, "'");
  return static_cast<std::size_t>(at - specs.begin());
}

class SharingLayer final : public Composite {
 public:
  SharingLayer(LayerPtr layer, Sharing shares) : shares_(std::move(shares)) {
    add(std::move(layer), "");
    Layer::set_name(inner().name());
    const SkipUse own = inner().skips();
    PIPEWRIGHT_CHECK(own.takes + own.looks + own.puts == 0, "a shared weight among other skips");
    depth_.assign(inner().parameters().size(), kOwn);
    int depth = 0;
    for (const auto* names : {&shares_.takes, &shares_.looks})
      for (const std::string& name : *names)
        depth_[position_of(inner().parameters(), name)] = depth++;
    for (const std::string& name : shares_.lends) lent_.push_back(position_of(own_specs(), name));
    check_names();
  }

  Specs parameters() const override { return own_specs(); }
  SkipUse skips() const override {
    return {.takes = static_cast<int>(shares_.takes.size()),
            .looks = static_cast<int>(shares_.looks.size()),
            .puts = static_cast<int>(lent_.size()),
            .lends = lent_,
            .borrows = borrows()};
  }

  /// A borrowed weight is no leaf of the stage, so a product with it is none that the stage could
  /// add.
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const std::size_t borrowed = shares_.takes.size() + shares_.looks.size();
    PIPEWRIGHT_CHECK(inputs.size() > borrowed, "layer '", name(), "': no weight was lent");
    if (borrowed == 0)
      return lending(inner().forward_all(inputs, parameters, buffers, pass), parameters);
    std::vector<at::Tensor> all;
    auto own = parameters.begin();
    for (const int depth : depth_)
      all.push_back(depth == kOwn ? *own++ : inputs[inputs.size() - 1 - as_size(depth)]);
    Pass given = pass;
    given.sums = nullptr;
    const Tensors values(inputs.begin(), inputs.end() - std::ssize(shares_.takes));
    return lending(inner().forward_all(values, all, buffers, given), parameters);
  }

 private:
  static constexpr int kOwn = -1;

  Tensors lending(Tensors outputs, std::span<const at::Tensor> parameters) const {
    for (const std::size_t lent : lent_) outputs.push_back(parameters[lent]);
    return outputs;
  }
  const Layer& inner() const { return *parts_[0].layer; }
  bool borrows() const { return !shares_.takes.empty() || !shares_.looks.empty(); }

  Specs own_specs() const {
    Specs all = inner().parameters();
    for (const Sharing::Copy& copy : shares_.copies) {
      ParameterSpec& spec = all[position_of(all, copy.parameter)];
      spec.name = copy.name;
      spec.drawn_as = copy.of;
      spec.copied = copy.gradients;
    }
    Specs own;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (depth_[i] == kOwn) own.push_back(std::move(all[i]));
    return own;
  }

  Sharing shares_;
  std::vector<int> depth_;         ///< [parameter of the inner layer] → where it is on the stack
  std::vector<std::size_t> lent_;  ///< positions among its own parameters
};

}  // namespace

LayerPtr sharing(LayerPtr layer, Sharing shares) {
  const bool none =
      shares.lends.empty() && shares.takes.empty() && shares.looks.empty() && shares.copies.empty();
  if (none) return layer;
  return std::make_shared<SharingLayer>(std::move(layer), std::move(shares));
}

Tie read_tie(Options& options, const std::string& help) {
  const std::vector<std::string> names{"none", "start", "same", "late"};  // as in Tie
  const std::string tie = options.choice("tie", names, "none", help);
  return static_cast<Tie>(std::ranges::find(names, tie) - names.begin());
}

}  // namespace pipewright
