// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/models/text_model.h"

#include <algorithm>

#include "core/base/random.h"
#include "core/tensors/torch.h"
#include "tests/unit/nn/layers_fixture.h"

namespace pipewright::test {

TextModel::TextModel(const std::string& name, const std::string& options, std::uint64_t seed)
    : model_(make_model(name, options)), layers_(model_->layers()) {
  for (const LayerPtr& layer : layers_) {
    parameters_.push_back(random_parameters(*layer, seed++));
    const auto specs = layer->parameters();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      at::Tensor& value = parameters_.back()[i];
      value *= 0.3;
      if (specs[i].init.zero_row >= 0) value[specs[i].init.zero_row].zero_();
      by_name_[parameter_name(*layer, specs[i].name)] = value;
    }
  }
}

std::vector<at::Tensor> TextModel::all_parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& own : parameters_) all.insert(all.end(), own.begin(), own.end());
  return all;
}

void TextModel::require_gradients() {
  for (at::Tensor& parameter : all_parameters()) parameter.set_requires_grad(true);
}

void TextModel::make_up() {
  for (auto& [name, value] : by_name_) value.copy_(made_up(name, value.sizes()));
}

at::Tensor TextModel::ids(std::int64_t samples, std::int64_t tokens, std::uint64_t seed,
                          std::int64_t first) const {
  const RandomStream stream(seed, "test");
  at::Tensor out = at::empty({samples, tokens}, at::kLong);
  const auto words = static_cast<std::uint64_t>(model_->vocabulary() - first);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    out.mutable_data_ptr<std::int64_t>()[i] =
        first + static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(i), words));
  return out;
}

Tensors TextModel::run(const at::Tensor& ids, const Pass& pass, std::size_t last) const {
  Tensors x{ids};
  for (std::size_t i = 0; i < layers_.size() && i <= last; ++i) {
    std::vector<at::Tensor> buffers = fresh_buffers(*layers_[i]);
    x = layers_[i]->forward_all(x, parameters_[i], buffers, pass);
  }
  return x;
}

}  // namespace pipewright::test
