/// A model is an ordered list of layers and what goes in and comes out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/config/options.h"
#include "core/stage/layer.h"
#include "core/stage/task.h"

namespace pipewright {

/// A family of models. Constructors read their options and do nothing else.
class Model {
 public:
  virtual ~Model() = default;

  /// Layers in order, named. Deterministic; cheap (no tensors).
  virtual std::vector<LayerPtr> layers() const = 0;
  /// Shape of one input sample, e.g. {3, 32, 32}. A model that flattens accepts any shape with
  /// that many elements: see flattens().
  virtual std::vector<std::int64_t> input_shape() const = 0;
  virtual bool flattens() const { return false; }
  /// > 0: inputs are int64 tokens below it, at most input_shape()[0] of a sample.
  virtual std::int64_t vocabulary() const { return 0; }
  virtual Task task() const { return Task::Classify; }
  virtual std::int64_t classes() const = 0;
  /// The auxiliary head put after layer `last_layer` (index of a stage's last layer), classifying
  /// that layer's output, of which it is given the first tensor. Its parameters are called
  /// "heads.<stage>.<name>". Null where a head has no meaning: no scheme can learn there.
  virtual LayerPtr head(std::size_t last_layer) const = 0;
  /// Of a translation: so many layers read the source alone and pass the target so far on, as the
  /// last of their tensors. Each layer after them is Incremental or treats every place by itself.
  virtual std::size_t encoder_layers() const { return 0; }
  /// Layers per stage of a published cut into that many stages; empty when there is none.
  virtual std::vector<std::int64_t> published_balance(int stages) const {
    (void)stages;
    return {};
  }
};

}  // namespace pipewright

#define PIPEWRIGHT_MODEL(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Model, name, Type, summary)
