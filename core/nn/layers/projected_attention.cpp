// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers/attention_core.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class ProjectedAttention final : public Composite {
 public:
  ProjectedAttention(std::vector<NamedLayer> projections, NamedLayer output, std::int64_t heads,
                     AttentionOptions options)
      : masked_(options.masked), core_(heads, options) {
    PIPEWRIGHT_CHECK(projections.size() == 1 || projections.size() == 3, projections.size(),
                     " projections to query, key and value");
    projections.push_back(std::move(output));
    for (auto& [child_name, layer] : projections) add(std::move(layer), child_name + ".");
    check_names();
  }

  void set_name(std::string name) override {
    core_.set_name(name);
    Composite::set_name(std::move(name));
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(!masked_ || inputs.size() > 1, "attention '", name(), "' is given no mask");
    std::vector<at::Tensor> qkv;
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i)
      qkv.push_back(parts_[i].forward(inputs[0], parameters, buffers, pass));
    if (qkv.size() == 1) qkv = qkv[0].chunk(3, -1);
    const at::Tensor mixed =
        core_.attend(core_.split(qkv[0], true), core_.split(qkv[1], false),
                     core_.split(qkv[2], false), masked_ ? inputs.back() : at::Tensor(), pass);
    Tensors outputs = inputs;
    outputs[0] = parts_.back().forward(AttentionCore::join(mixed), parameters, buffers, pass);
    return outputs;
  }

  SkipUse skips() const override { return {.looks = masked_ ? 1 : 0}; }

 private:
  bool masked_;
  AttentionCore core_;
};

}  // namespace

LayerPtr attention(std::vector<NamedLayer> projections, NamedLayer output, std::int64_t heads,
                   AttentionOptions options) {
  return std::make_shared<ProjectedAttention>(std::move(projections), std::move(output), heads,
                                              options);
}

}  // namespace pipewright
