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

/// What crosses a layer or stage boundary: one tensor, seldom a few. Batch is dimension 0.
using Tensors = c10::SmallVector<at::Tensor, 2>;

/// How a parameter starts. Draws come from the stream (seed, "init", parameter name), element
/// index.
struct Initializer {
  enum class Kind : std::uint8_t {
    Constant,        ///< the value a
    Uniform,         ///< in [−a, a)
    Normal,          ///< mean 0, standard deviation a
    TruncatedNormal  ///< the same given that it lies in [−2a, 2a], so its deviation is 0.88 a
  } kind = Kind::Constant;
  double a = 0;
  std::int64_t zero_row = -1;  ///< ≥ 0: that row of the first dimension is 0 instead
};

struct ParameterSpec {
  std::string name;  ///< within its layer: "weight", "conv.weight"
  std::vector<std::int64_t> shape;
  Initializer init;
};

/// State that training updates without gradient (batch-norm statistics): one value per replica,
/// never versioned, predicted or restored.
struct BufferSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  double fill = 0;
};

class DeferredStatistics;

/// What a forward must know besides its tensors. The same for every layer of a stage's pass.
struct Pass {
  bool training = true;
  std::uint64_t seed = 0;
  int epoch = 0;
  int minibatch = 0;              ///< within the epoch
  std::int64_t first_sample = 0;  ///< of this micro-batch within the whole mini-batch
  int microbatches = 1;           ///< of the mini-batch, each a pass
  bool recomputing = false;       ///< the same pass again: must leave buffers alone
  /// Where batch-norm's statistics gather until the mini-batch is whole; null: they move the
  /// running ones at once.
  DeferredStatistics* deferred = nullptr;
};

/// Skip connections of a layer: it takes so many of the tensors put aside, the last first, looks
/// at so many of the next, which stay, then puts so many aside, behind all others.
struct SkipUse {
  int takes = 0, looks = 0, puts = 0;
  bool gradients = true;  ///< what it puts aside may have them; false: integers or truth values
};

/// A unit the model can be cut at, or a part of one. Immutable after construction and shared by
/// all replicas; forward() may run in several threads at once.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual std::vector<BufferSpec> buffers() const { return {}; }

  /// `parameters` and `buffers` are in the order declared. Pure but for buffers, which it may
  /// overwrite in training. Recorded by autograd where grad mode is on. Must not write into inputs.
  virtual at::Tensor forward(const at::Tensor& input, std::span<const at::Tensor> parameters,
                             std::span<at::Tensor> buffers, const Pass& pass) const = 0;

  /// Of all tensors at a boundary; the default is forward() of the first, the others pass
  /// untouched.
  virtual Tensors forward_all(const Tensors& inputs, std::span<const at::Tensor> parameters,
                              std::span<at::Tensor> buffers, const Pass& pass) const;

  /// What forward_all() takes back and puts aside for layers further on: such a tensor goes
  /// straight from the stage that puts it aside to those that look at it and take it back.
  virtual SkipUse skips() const { return {}; }

  /// Full name within the model ("3", "conv1_2"): prefix of its parameters, key of its random
  /// streams. Set once by whoever puts it into a model or a composite layer.
  const std::string& name() const { return name_; }
  virtual void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::string name_;
};

using LayerPtr = std::shared_ptr<Layer>;

/// "0.weight" and so on, with the layer's name in front.
std::string parameter_name(const Layer& layer, const std::string& parameter);

}  // namespace pipewright
