// SPDX-License-Identifier: Apache-2.0
/// Layers describe, stages own. A layer declares its parameters and buffers and a forward over
/// given tensors; it holds no tensor, so a model of any size costs nothing until a stage is built.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// The tensors at a layer or stage boundary: one, seldom a few. Dimension 0 is the batch.
using Tensors = c10::SmallVector<at::Tensor, 2>;

/// Initial value of a parameter. Element i is drawn from element i of the stream (seed, "init",
/// full parameter name).
struct Initializer {
  enum class Kind : std::uint8_t {
    Constant,        ///< the value a
    Uniform,         ///< in [−a, a)
    Normal,          ///< mean 0, standard deviation a
    TruncatedNormal  ///< Normal conditioned on [−2a, 2a]; its standard deviation is 0.88 a
  } kind = Kind::Constant;
  double a = 0;
  std::int64_t zero_row = -1;  ///< ≥ 0: that row of the first dimension is 0 instead
};

struct ParameterSpec {
  std::string name;  ///< within the layer: "weight", "conv.weight"
  std::vector<std::int64_t> shape;
  Initializer init;
  /// In mixed precision the layer gets a narrow copy of a parameter, unless it is exact.
  bool exact = false;
  std::string drawn_as = {};  ///< the full name whose stream it is drawn from; empty: its own
  /// It is a copy of the parameter `drawn_as`: the stages that have the two send each other their
  /// gradients (PipelineShape::tied).
  bool copied = false;
};

/// State that training updates without a gradient (batch-norm statistics). A replica has one value
/// of it, which is not versioned, predicted or stashed as weights are.
struct BufferSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  double fill = 0;
};

class DeferredStatistics;
class EarlierSlices;

/// The sums of a stage's weight gradients over the micro-batches of a mini-batch. A layer may give
/// it the factors of a product instead of the product, which is then added where it is computed.
class GradientSums {
 public:
  virtual ~GradientSums() = default;
  /// Takes left · right, of the shape of `parameter`, which is one of the stage's leaves. Returns
  /// what the layer must give autograd as the parameter's gradient: the product, or an undefined
  /// tensor once the product is part of the sum.
  virtual at::Tensor add_product(const at::Tensor& parameter, const at::Tensor& left,
                                 const at::Tensor& right) = 0;
};

/// Facts that a forward needs besides its tensors, the same for all layers of a stage in one pass.
struct Pass {
  bool training = true;
  std::uint64_t seed = 0;
  int epoch = 0;
  int minibatch = 0;              ///< within the epoch
  std::int64_t first_sample = 0;  ///< of this micro-batch, counted within the mini-batch
  int microbatches = 1;           ///< in the mini-batch; each is a pass of its own
  /// Of activations, which is narrow in mixed precision: for layers whose inputs, such as token
  /// ids, do not say it.
  at::ScalarType format = at::kFloat;
  int slice = 0, slices = 1;  ///< the pass has this one of so many equal slices of sequences
  bool recomputing = false;   ///< the pass runs a second time and must not change buffers
  /// Gathers batch-norm statistics until the mini-batch is complete; null: each micro-batch updates
  /// the running statistics.
  DeferredStatistics* deferred = nullptr;
  GradientSums* sums = nullptr;  ///< of the stage, in training; it outlives the graph
  /// With slices: what the slices of the same micro-batch before this one have left for it.
  EarlierSlices* earlier = nullptr;

  /// Epoch and mini-batch as one coordinate of a random stream.
  std::uint64_t time() const {
    return (std::uint64_t{static_cast<std::uint32_t>(epoch)} << 32) |
           static_cast<std::uint32_t>(minibatch);
  }
};

/// How a layer uses the skip tensors, which are a stack: it pops `takes` of them, peeks at the next
/// `looks`, then pushes `puts`. The stack lies behind the other tensors at a boundary, its top
/// last.
struct SkipUse {
  int takes = 0, looks = 0, puts = 0;
  bool gradients = true;  ///< pushed tensors may have gradients; false: integers or booleans
  /// Positions of parameters of the layer: what it pushes are these (sharing() in layers.h).
  std::vector<std::size_t> lends = {};
  bool borrows = false;  ///< what it pops and peeks at are such parameters
};

/// The smallest unit that a cut of the model can separate, or a part of one. It is immutable once
/// named and shared by all replicas; forward() may run in several threads at once.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual std::vector<BufferSpec> buffers() const { return {}; }

  /// Computes the output. `parameters` and `buffers` are in the declared order. The only side
  /// effect allowed is overwriting `buffers` in training; inputs must not be written. Autograd
  /// records the operations where grad mode is on.
  virtual at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                             std::span<at::Tensor> buffers, const Pass& pass) const = 0;

  /// Computes all tensors at the output boundary. The default applies forward() to the first tensor
  /// and passes the others on unchanged.
  virtual Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                              std::span<at::Tensor> buffers, const Pass& pass) const;

  /// Skip tensors that forward_all() pops, peeks at and pushes. A skip tensor is sent directly from
  /// the stage that pushes it to the stages that peek at it or pop it.
  virtual SkipUse skips() const { return {}; }

  /// Full name within the model ("3", "conv1_2"): the prefix of its parameters' names and the key
  /// of its random streams. The model or composite layer that contains it sets it once.
  const std::string& name() const { return name_; }
  virtual void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::string name_;
};

using LayerPtr = std::shared_ptr<Layer>;

/// The full name of a parameter or buffer: the layer's name, a dot, the name within the layer
/// ("0.weight").
std::string parameter_name(const Layer& layer, const std::string& parameter);

}  // namespace pipewright
