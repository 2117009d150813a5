// SPDX-License-Identifier: Apache-2.0
/// Data sets give samples by index. The loader decides their order and sharding, and whether they
/// are augmented.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/nn/layer.h"
#include "core/nn/named_input.h"
#include "core/nn/task.h"

namespace pipewright {

enum class Split : std::uint8_t { Train, Test };

/// Facts of the experiment that a data set gets before open() reads it.
struct DatasetRequest {
  std::uint64_t seed = 1;                 ///< of the run; no data set here depends on it
  std::vector<std::int64_t> model_input;  ///< shape of one input sample of the model
  bool model_flattens = false;
  std::int64_t model_classes = 0;
  std::int64_t model_vocabulary = 0;
  std::vector<NamedInput> model_inputs;  ///< as Model::named_inputs()
  Task model_task = Task::Classify;
  at::ScalarType model_numbers = at::kFloat;  ///< in which the model computes
  /// What the loss compares with, where the data set can give it: Loss::compares_with().
  Task targets = Task::Classify;

  friend bool operator==(const DatasetRequest&, const DatasetRequest&) = default;
};

/// Facts on a data set's samples before it is opened. Empty and 0: not known.
struct SampleForm {
  std::vector<std::int64_t> shape;  ///< as sample_shape()
  std::int64_t classes = 0;         ///< as classes(): with real-valued targets, their number
  std::int64_t vocabulary = 0;
};

/// The inputs and targets of n samples. `x` has one tensor or more, [n, …] each: float32 (float64
/// where the file has it) or int64 tokens; inputs beside the first may be any integers, or bool.
/// `y` is int64, [n] or, with a target per token, [n, T]; positions without a target hold
/// kNoTarget. Of Task::Regress, y is floating, [n, classes()]; of Task::Label it is uint8, [n] or
/// [n, …].
struct Batch {
  Tensors x;
  at::Tensor y;
};

/// A set of samples. Constructors read their options and do nothing else; open() reads files. After
/// open(), several threads may call const members at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Throws Error{Data}. For a missing file the message says where it was looked for and where to
  /// get it; for a damaged record it says which file and which record.
  virtual void open(const DatasetRequest& request) = 0;
  /// The form of the samples, from the options alone or from a file of the user's that has the
  /// numbers; nothing if that file cannot be read, which open() reports. The options of a model
  /// that an experiment leaves out take their values from it. May be called before open().
  virtual SampleForm form(Task /*targets*/) const { return {}; }
  virtual std::int64_t size(Split split) const = 0;
  /// Shape of the first input of a sample; {greatest number of tokens in a sample} for texts.
  virtual std::vector<std::int64_t> sample_shape() const = 0;
  /// Targets lie in [0, classes). Of Task::Regress and Label: the number of targets of a
  /// sample, or of channels of its map.
  virtual std::int64_t classes() const = 0;
  /// If positive, inputs are int64 tokens in [0, vocabulary).
  virtual std::int64_t vocabulary() const { return 0; }
  /// Names of the tensors of Batch::x, of a data set that gives each sample several by name.
  virtual std::vector<std::string> input_names() const { return {}; }
  virtual Task task() const { return Task::Classify; }
  /// Metrics that the task reports besides accuracy: names of registered metrics, or "bleu".
  virtual std::vector<std::string> metrics() const { return {}; }
  /// Whether samples are stored class by class, so that a prefix of them has few classes.
  virtual bool sorted_by_class() const { return false; }
  /// What a user should know of the opened files: samples that were left out, and the like.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Number of tokens without padding; `loader.bucket` groups samples of similar length by it.
  virtual std::int64_t length(Split, std::int64_t /*index*/) const { return 0; }
  /// Makes now what batch() would otherwise make at its first call. A training calls it before its
  /// clock starts.
  virtual void prepare() const {}
  /// Returns the samples with these indices, in that order. Without `augmentation` (evaluation)
  /// they are not augmented; otherwise sample j of the batch draws from elements [j·2^20,
  /// (j+1)·2^20) of that stream.
  virtual Batch batch(Split split, std::span<const std::int64_t> indices,
                      const RandomStream* augmentation) const = 0;
  /// For translation: readable text of `tokens`, which contain no marks (padding, start, end). BLEU
  /// compares it with reference(). By default the tokens' numbers.
  virtual std::string text(std::span<const std::int64_t> tokens) const;
  /// For translation: readable text of a sample's target. By default text() of its target tokens.
  virtual std::string reference(Split split, std::int64_t index) const;
};

/// A remark on labels between these, none of which is 0; "" if one is.
std::string unused_class_remark(std::int64_t least, std::int64_t most);

}  // namespace pipewright

#define PIPEWRIGHT_DATASET(name, Type, summary)  \
  PIPEWRIGHT_STAMP(dataset, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Dataset, name, Type, summary)
