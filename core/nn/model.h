// SPDX-License-Identifier: Apache-2.0
/// Models. A model is an ordered list of layers with the shapes of its inputs and outputs.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/layer.h"
#include "core/nn/named_input.h"
#include "core/nn/task.h"

namespace pipewright {

/// A family of models. Constructors read their options and do nothing else.
class Model {
 public:
  virtual ~Model() = default;

  /// Makes the layers, in order and named. Deterministic, and cheap because layers hold no tensors.
  virtual std::vector<LayerPtr> layers() const = 0;
  /// Shape of one input sample, e.g. {3, 32, 32}. If flattens(), any shape with as many elements is
  /// accepted.
  virtual std::vector<std::int64_t> input_shape() const = 0;
  virtual bool flattens() const { return false; }
  /// If positive, inputs are int64 tokens in [0, vocabulary), at most input_shape()[0] per sample.
  virtual std::int64_t vocabulary() const { return 0; }
  /// All inputs of a sample, the first as above, of a model that takes several by name: they are
  /// the tensors of Batch::x. Empty where a sample has one input, or is a translation.
  virtual std::vector<NamedInput> named_inputs() const { return {}; }
  virtual Task task() const { return Task::Classify; }
  virtual std::int64_t classes() const = 0;
  /// The auxiliary head behind layer `last_layer`, the last of a stage: it classifies the first
  /// tensor of that layer's output. Its parameters are called "heads.<stage>.<name>". Null where no
  /// head can classify the output; schemes then cannot compute a local loss there.
  virtual LayerPtr head(std::size_t last_layer) const = 0;
  /// For translation: number of leading layers that read the source only and pass the target prefix
  /// on as their last tensor. Every later layer is Incremental or treats each position separately.
  virtual std::size_t encoder_layers() const { return 0; }
  /// Whether a sequence can be cut into slices, of which each sees those before it: the model is
  /// causal, and all its layers but attention treat each position by itself.
  virtual bool runs_in_slices() const { return false; }
  /// Layers per stage of a published cut into that many stages; empty if there is none.
  virtual std::vector<std::int64_t> published_balance(int stages) const {
    (void)stages;
    return {};
  }
  /// Whether its layers say how they are initialised. Otherwise a training begins with a weights
  /// file, and none of them can be fresh.
  virtual bool initialises() const { return true; }
  /// Whether samples of fewer tokens than input_shape()[0] fit, too.
  virtual bool takes_shorter_samples() const { return true; }
  /// Ends the message of an experiment that wants more stages than there are layers: why there are
  /// so few, beginning with "; ", or "".
  virtual std::string why_so_few_layers() const { return {}; }
};

}  // namespace pipewright

#define PIPEWRIGHT_MODEL(name, Type, summary)  \
  PIPEWRIGHT_STAMP(model, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Model, name, Type, summary)
