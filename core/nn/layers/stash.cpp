// SPDX-License-Identifier: Apache-2.0
/// Skip connections: a pushed tensor follows the main one on the skip stack until it is popped.
#include "core/base/error.h"
#include "core/nn/composite.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

class Stash final : public BoundaryLayer {
 public:
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor>, std::span<at::Tensor>,
                      const Pass&) const override {
    Tensors outputs = inputs;
    outputs.push_back(inputs[0]);
    return outputs;
  }

  SkipUse skips() const override { return {.puts = 1}; }
};

/// Base of the layers that pop a skip tensor.
class Pop : public Composite {
 public:
  Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                      std::span<at::Tensor> buffers, const Pass& pass) const override {
    PIPEWRIGHT_CHECK(inputs.size() > 1, "layer '", name(), "': nothing was put aside");
    Tensors outputs = inputs;
    const at::Tensor stashed = outputs.pop_back_val();
    outputs[0] = joined(outputs[0], stashed, parameters, buffers, pass);
    return outputs;
  }

  SkipUse skips() const override { return {.takes = 1}; }

 protected:
  virtual at::Tensor joined(const at::Tensor& x, const at::Tensor& stashed,
                            std::span<const at::Tensor> parameters, std::span<at::Tensor> buffers,
                            const Pass& pass) const = 0;
};

class AddStashed final : public Pop {
 public:
  AddStashed(LayerPtr shortcut, Activation activation) : activation_(activation) {
    if (shortcut) add(std::move(shortcut), "shortcut.");
    check_names();
  }

 protected:
  at::Tensor joined(const at::Tensor& x, const at::Tensor& stashed,
                    std::span<const at::Tensor> parameters, std::span<at::Tensor> buffers,
                    const Pass& pass) const override {
    return activate_in_place(
        activation_,
        at::add(x,
                parts_.empty() ? stashed : parts_[0].forward(stashed, parameters, buffers, pass)));
  }

 private:
  Activation activation_;
};

class ConcatenateStashed final : public Pop {
 protected:
  at::Tensor joined(const at::Tensor& x, const at::Tensor& stashed, std::span<const at::Tensor>,
                    std::span<at::Tensor>, const Pass&) const override {
    const std::int64_t bottom = stashed.size(2) - x.size(2), right = stashed.size(3) - x.size(3);
    PIPEWRIGHT_CHECK(bottom >= 0 && right >= 0, "layer '", name(),
                     "': the map is larger than the one put aside");
    const bool same = bottom == 0 && right == 0;
    return at::cat({same ? x : at::constant_pad_nd(x, {0, right, 0, bottom}), stashed}, 1);
  }
};

}  // namespace

LayerPtr stash() {
  return std::make_shared<Stash>();
}

LayerPtr add_stashed(LayerPtr shortcut, Activation activation) {
  return std::make_shared<AddStashed>(std::move(shortcut), activation);
}

LayerPtr concatenate_stashed() {
  return std::make_shared<ConcatenateStashed>();
}

}  // namespace pipewright
