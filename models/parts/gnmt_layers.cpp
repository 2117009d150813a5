// SPDX-License-Identifier: Apache-2.0
#include "models/parts/gnmt_layers.h"

#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/incremental.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Base of the layers that only work on several tensors.
class Joint : public Composite {
 public:
  at::Tensor forward(const at::Tensor&, std::span<const at::Tensor>, std::span<at::Tensor>,
                     const Pass&) const override {
    PIPEWRIGHT_CHECK(false, "layer '", name(), "' takes more than one tensor");
  }
};

class SourceEmbedding final : public Joint {
 public:
  SourceEmbedding(std::int64_t vocabulary, std::int64_t width) {
    add(embedding(vocabulary, width, {.zero_row = kPaddingToken}), "");
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() == 2, "layer '", name(), "' takes source and target");
    return {parts_[0].forward(inputs[0], parameters, buffers, pass),
            inputs[0].ne(kPaddingToken).sum(1), inputs[1]};
  }
};

class TargetEmbedding final : public Joint {
 public:
  TargetEmbedding(std::int64_t vocabulary, std::int64_t width) {
    add(embedding(vocabulary, width, {.zero_row = kPaddingToken}), "");
  }
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() == 3, "layer '", name(), "' takes memory, lengths and target");
    return {parts_[0].forward(inputs[2], parameters, buffers, pass), inputs[0], inputs[1]};
  }
};

class ContextLstm final : public Joint, public Incremental {
 public:
  ContextLstm(std::int64_t width, ContextLstmOptions options) : options_(options) {
    add(dropout(options.dropout), "");
    add(lstm(2 * width, width), "");
  }

  void set_name(std::string name) override {
    parts_[0].layer->set_name(name + ".dropout");
    Layer::set_name(std::move(name));
  }

  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    const at::Tensor dropped = parts_[0].forward(inputs[0], parameters, buffers, pass);
    return outputs(inputs,
                   parts_[1].forward(at::cat({dropped, inputs[1]}, 2), parameters, buffers, pass));
  }

  Tensors go_on(const Tensors& inputs, std::span<const at::Tensor> parameters,
                Carried& carried) const override {
    const auto& recurrent = dynamic_cast<const Incremental&>(*parts_[1].layer);
    return outputs(inputs,
                   recurrent.go_on({at::cat({inputs[0], inputs[1]}, 2)}, parameters, carried)[0]);
  }

 private:
  Tensors outputs(const Tensors& inputs, const at::Tensor& y) const {
    const at::Tensor sum = options_.residual ? y + inputs[0] : y;
    return options_.drops_context ? Tensors{sum} : Tensors{sum, inputs[1]};
  }

  ContextLstmOptions options_;
};

}  // namespace

LayerPtr source_embedding(std::int64_t vocabulary, std::int64_t width) {
  return std::make_shared<SourceEmbedding>(vocabulary, width);
}

LayerPtr target_embedding(std::int64_t vocabulary, std::int64_t width) {
  return std::make_shared<TargetEmbedding>(vocabulary, width);
}

LayerPtr context_lstm(std::int64_t width, ContextLstmOptions options) {
  return std::make_shared<ContextLstm>(width, options);
}

}  // namespace pipewright
