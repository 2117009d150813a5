// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/subspace.h"

#include <ATen/record_function.h>

#include <utility>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/initialize.h"
#include "core/nn/meta/on_meta.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kShift = 32'768;  // of tokens in two bytes, which are −32,768 to 32,767
constexpr double kOriginsStd = 0.02;

class WithTokens final : public Composite {
 public:
  WithTokens(LayerPtr embedding, std::shared_ptr<const Subspace> subspace)
      : subspace_(std::move(subspace)) {
    add(std::move(embedding), "");
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    return {parts_[0].forward(inputs[0], parameters, buffers, pass), subspace_->narrow(inputs[0])};
  }

 private:
  std::shared_ptr<const Subspace> subspace_;
};

class OutOfSubspace final : public BoundaryLayer {
 public:
  OutOfSubspace(std::shared_ptr<const Subspace> subspace, bool keeps)
      : subspace_(std::move(subspace)), keeps_(keeps) {}

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    PIPEWRIGHT_CHECK(inputs.size() > 1, "layer '", name(), "' has no tokens");
    const auto [directions, origins] = subspace_->tables(inputs[0]);
    const at::Tensor x = at::linear(inputs[0], directions);
    Tensors outputs{inputs[1].is_meta() ? x
                                        : x + at::embedding(origins, subspace_->wide(inputs[1]))};
    for (std::size_t i = keeps_ ? 1 : 2; i < inputs.size(); ++i) outputs.push_back(inputs[i]);
    return outputs;
  }

 private:
  std::shared_ptr<const Subspace> subspace_;
  bool keeps_;
};

}  // namespace

Subspace::Tables Subspace::tables(const at::Tensor& like) const {
  const Lock lock(mutex_);
  for (const Tables& tables : made_)
    if (tables.directions.device() == like.device() &&
        tables.directions.scalar_type() == like.scalar_type())
      return tables;
  const at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unseen;  // what is kept is no activation of the pass
  const bool on_meta = like.is_meta();
  const auto drawn = [&](at::IntArrayRef shape, double deviation, const char* what) {
    const at::Tensor values =
        at::empty(shape, at::TensorOptions(at::kDouble).device(on_meta ? at::kMeta : at::kCPU));
    initialize(values, {Initializer::Kind::Normal, deviation}, 0, what);
    return values;
  };
  at::Tensor directions = drawn({width_, coordinates_}, 1, "subspace.directions");
  if (!on_meta) directions = std::get<0>(at::linalg_qr(directions)).contiguous();
  const at::Tensor origins =
      on_meta ? at::Tensor() : drawn({tokens_, width_}, kOriginsStd, "subspace.origins");
  const auto kept = [&](const at::Tensor& x) { return x.defined() ? x.to(like.options()) : x; };
  made_.push_back({kept(directions), kept(origins)});
  return made_.back();
}

at::Tensor Subspace::narrow(const at::Tensor& tokens) const {
  return in_two_bytes() ? at::sub(tokens, kShift).to(at::kShort) : tokens.to(at::kInt);
}

at::Tensor Subspace::wide(const at::Tensor& narrow) const {
  return in_two_bytes() ? narrow.to(at::kLong).add_(kShift) : narrow.to(at::kLong);
}

LayerPtr with_tokens(LayerPtr embedding, std::shared_ptr<const Subspace> subspace) {
  return std::make_shared<WithTokens>(std::move(embedding), std::move(subspace));
}

LayerPtr out_of_subspace(std::shared_ptr<const Subspace> subspace, bool keeps) {
  return std::make_shared<OutOfSubspace>(std::move(subspace), keeps);
}

}  // namespace pipewright
