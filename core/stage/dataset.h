/// Data sets: samples by index, so that order, sharding and augmentation are decided elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/registry.h"
#include "core/config/options.h"
#include "core/stage/layer.h"
#include "core/stage/task.h"

namespace pipewright {

enum class Split : std::uint8_t { Train, Test };

/// What a data set is told before it is read.
struct DatasetRequest {
  std::uint64_t seed = 1;                 ///< for made-up data only: real data ignore it
  std::vector<std::int64_t> model_input;  ///< shape of one sample as the model wants it
  bool model_flattens = false;
  std::int64_t model_classes = 0;
  std::int64_t model_vocabulary = 0;
  Task model_task = Task::Classify;
};

/// x: one tensor or more, [n, …] each: floating (float32; float64 where the file has it) or int64
/// tokens. y: int64, [n], or [n, T] with a target per token, kNoTarget where there is none.
struct Batch {
  Tensors x;
  at::Tensor y;
};

/// Constructors read their options and do nothing else; open() reads files. After open() all const
/// members may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Throws Error{Data}: which file, where it was looked for, where to get it; damaged records
  /// with file and record number.
  virtual void open(const DatasetRequest& request) = 0;
  virtual std::int64_t size(Split split) const = 0;
  /// Of the first input; of tokens {the most that a sample has}.
  virtual std::vector<std::int64_t> sample_shape() const = 0;
  /// Targets lie in [0, classes).
  virtual std::int64_t classes() const = 0;
  /// > 0: inputs are int64 tokens below it.
  virtual std::int64_t vocabulary() const { return 0; }
  virtual Task task() const { return Task::Classify; }
  /// The task's own metrics, besides the accuracy: names of registered ones, or "bleu".
  virtual std::vector<std::string> metrics() const { return {}; }
  /// Samples come class by class, so that the first of them would be of few classes.
  virtual bool sorted_by_class() const { return false; }
  /// By which `loader.bucket` puts samples of like length together: tokens, without padding.
  virtual std::int64_t length(Split, std::int64_t /*index*/) const { return 0; }
  /// The samples with these indices, in that order. `augmentation` is null for none (evaluation);
  /// otherwise sample j of the batch draws from elements [j·2^20, (j+1)·2^20) of the stream.
  virtual Batch batch(Split split, std::span<const std::int64_t> indices,
                      const RandomStream* augmentation) const = 0;
  /// Of a translation, what a reader would see, which BLEU compares: of tokens without marks, and
  /// of a sample's target. By default the tokens' numbers, and text() of the targets before the
  /// end.
  virtual std::string text(std::span<const std::int64_t> tokens) const;
  virtual std::string reference(Split split, std::int64_t index) const;
};

}  // namespace pipewright

#define PIPEWRIGHT_DATASET(name, Type, summary) \
  PIPEWRIGHT_REGISTER(::pipewright::Dataset, name, Type, summary)
