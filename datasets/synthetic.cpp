// SPDX-License-Identifier: Apache-2.0
/// Synthetic data that can be learnt: Gaussian inputs, labelled by a random network, the teacher.
///
///   class of x = argmax W₂ tanh(W₁ x),   W₁ [64, inputs] normal(0, 2/√inputs), W₂ [classes, 64]
///   normal(0, 1), x normal(0, 1) rounded to float32, the rest in float64
///
/// Inputs, teacher and label noise are separate streams of the option `seed`. The run's own seed
/// has no effect, so runs that differ in it see the same data. Models of texts get the data of
/// synthetic_tokens.h.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "core/base/error_at.h"
#include "core/nn/dataset.h"
#include "core/system/machine_limits.h"
#include "datasets/synthetic_tokens.h"

namespace pipewright {
namespace {

constexpr std::size_t kHidden = 64;
constexpr std::int64_t kElementLimit = std::int64_t{1} << 33;  // 32 GiB

class Teacher {
 public:
  Teacher(std::uint64_t seed, std::size_t inputs, std::size_t classes)
      : inputs_(inputs),
        hidden_(normals(RandomStream(seed, "synthetic.teacher", 1), kHidden * inputs,
                        2 / std::sqrt(static_cast<double>(inputs)))),
        classes_(normals(RandomStream(seed, "synthetic.teacher", 2), classes * kHidden, 1)) {}

  std::int64_t label(const float* x) const {
    std::array<double, kHidden> h{};
    for (std::size_t i = 0; i < kHidden; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < inputs_; ++j) sum += hidden_[i * inputs_ + j] * x[j];
      h[i] = std::tanh(sum);
    }
    std::size_t best = 0;
    double best_score = 0;
    for (std::size_t c = 0; c < classes_.size() / kHidden; ++c) {
      double score = 0;
      for (std::size_t i = 0; i < kHidden; ++i) score += classes_[c * kHidden + i] * h[i];
      if (c == 0 || score > best_score) {
        best = c;
        best_score = score;
      }
    }
    return static_cast<std::int64_t>(best);
  }

 private:
  static std::vector<double> normals(const RandomStream& stream, std::size_t count, double scale) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = scale * stream.normal(i);
    return values;
  }

  std::size_t inputs_;
  std::vector<double> hidden_;   // [kHidden, inputs]
  std::vector<double> classes_;  // [classes, kHidden]
};

/// The samples of one split; x is [n, elements], row-major.
struct Samples {
  std::vector<float> x;
  std::vector<std::int64_t> y;
};

class Synthetic final : public Dataset {
 public:
  explicit Synthetic(Options& options)
      : counts_{options.integer("train", 512, "Number of training samples.", {1, 1e9}),
                options.integer("test", 256, "Number of test samples.", {1, 1e9})},
        distinct_(
            options.integer("distinct", 0,
                            "Number of different samples, which are repeated; 0 = all are "
                            "different. Saves memory where speed is measured with large samples.",
                            kNotNegative)),
        classes_(options.integer("classes", 0, "Number of classes; 0 = as many as the model has.",
                                 kNotNegative)),
        shape_(options.integers("shape", {}, "Shape of one sample; [] = the model's input.",
                                kPositive)),
        noise_(options.number("noise", 0,
                              "Share of the training labels replaced by classes drawn at random.",
                              kFraction)),
        seed_(static_cast<std::uint64_t>(options.integer(
            "seed", 0, "Seed of the data, which train.seed does not change.", kNotNegative))),
        where_(options.where("classes").text()) {}

  void open(const DatasetRequest& request) override {
    if (classes_ == 0) classes_ = request.model_classes;
    if (shape_.empty()) shape_ = request.model_input;
    vocabulary_ = request.model_vocabulary;
    if (request.model_task != Task::Minimize) task_ = request.model_task;
    if (classes_ < 1)
      throw experiment_error(
          where_, "synthetic: the model does not say its number of classes; set dataset.classes");
    std::int64_t room = kElementLimit / std::max(made(0), made(1));
    elements_ = 1;
    for (const std::int64_t size : shape_) {
      if (size < 1 || size > room)
        throw experiment_error(
            where_, "synthetic: more than ", kElementLimit,
            " numbers; give fewer samples, fewer distinct ones or a smaller shape");
      room /= size;
      elements_ *= static_cast<std::size_t>(size);
    }
    check_memory();
    if (vocabulary_ > 0) {
      open_tokens();
      return;
    }
  }

  SampleForm form(Task /*targets*/) const override {
    return {.shape = shape_, .classes = classes_};
  }

  std::int64_t size(Split split) const override { return counts_[static_cast<std::size_t>(split)]; }
  std::vector<std::int64_t> sample_shape() const override { return shape_; }
  std::int64_t classes() const override { return classes_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Task task() const override { return task_; }

  void prepare() const override {
    if (vocabulary_ == 0) std::call_once(samples_made_, [this] { make_samples(); });
  }
  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    if (vocabulary_ > 0) return token_batch(static_cast<std::size_t>(split), indices);
    prepare();
    const Samples& from = splits_[static_cast<std::size_t>(split)];
    std::vector<std::int64_t> shape = shape_;
    shape.insert(shape.begin(), static_cast<std::int64_t>(indices.size()));
    Batch batch{{at::empty(shape, at::kFloat)}, at::empty({shape[0]}, at::kLong)};
    auto* x = batch.x[0].mutable_data_ptr<float>();
    auto* y = batch.y.mutable_data_ptr<std::int64_t>();
    for (const std::int64_t index : indices) {
      PIPEWRIGHT_CHECK(index >= 0 && index < size(split), "sample ", index);
      const auto i = static_cast<std::size_t>(index % made(static_cast<std::size_t>(split)));
      x = std::copy_n(from.x.data() + i * elements_, elements_, x);
      *y++ = from.y[i];
    }
    return batch;
  }

 private:
  /// Throws Error{Data} if the samples of both splits, which are kept in memory, exceed the memory
  /// limit.
  void check_memory() const {
    const double each =
        static_cast<double>(elements_) * (vocabulary_ > 0 ? sizeof(std::int64_t) : sizeof(float));
    const double bytes = each * static_cast<double>(made(0) + made(1));
    if (const MemoryLimit limit = memory_limit(); bytes > limit.bytes)
      throw data_error(where_, "synthetic: its samples take ", bytes_text(bytes), "; ", limit.text,
                       "; give fewer samples, fewer distinct ones or a smaller shape");
  }

  void open_tokens() {
    if (shape_.size() != 1)
      throw experiment_error(where_,
                             "synthetic: the model reads tokens; expected dataset.shape: [tokens], "
                             "the length of a text");
    for (std::size_t split = 0; split < 2; ++split)
      tokens_[split] = synthetic_tokens({.task = task_,
                                         .seed = seed_,
                                         .split = split,
                                         .count = made(split),
                                         .tokens = shape_[0],
                                         .vocabulary = vocabulary_,
                                         .classes = classes_});
  }

  /// Number of different samples in a split.
  std::int64_t made(std::size_t split) const {
    return distinct_ > 0 ? std::min(distinct_, counts_[split]) : counts_[split];
  }

  Batch token_batch(std::size_t split, std::span<const std::int64_t> indices) const {
    const TokenSamples& from = tokens_[split];
    const auto rows = [&](const std::vector<std::int64_t>& all, std::int64_t width) {
      at::Tensor part = at::empty({static_cast<std::int64_t>(indices.size()), width}, at::kLong);
      auto* out = part.mutable_data_ptr<std::int64_t>();
      for (const std::int64_t index : indices)
        out = std::copy_n(all.begin() + index % made(split) * width, width, out);
      return part;
    };
    Batch batch{{rows(from.x, from.tokens)}, rows(from.y, from.targets)};
    if (!from.so_far.empty()) batch.x.push_back(rows(from.so_far, from.tokens));
    if (task_ == Task::Classify) batch.y = batch.y.view({-1});
    return batch;
  }

  /// Makes the samples at the first batch(), because planning needs none and images take seconds.
  void make_samples() const {
    const Teacher teacher(seed_, elements_, static_cast<std::size_t>(classes_));
    splits_[0] = samples_of(teacher, 0, noise_);
    splits_[1] = samples_of(teacher, 1, 0);
  }

  Samples samples_of(const Teacher& teacher, std::size_t split, double noise) const {
    const RandomStream inputs(seed_, "synthetic.inputs", split);
    const RandomStream replaced(seed_, "synthetic.noise", split, 0);
    const RandomStream labels(seed_, "synthetic.noise", split, 1);
    const auto count = static_cast<std::size_t>(made(split));
    Samples samples{std::vector<float>(count * elements_), std::vector<std::int64_t>(count)};
    for (std::size_t i = 0; i < samples.x.size(); ++i)
      samples.x[i] = static_cast<float>(inputs.normal(i));
    for (std::size_t i = 0; i < count; ++i)
      samples.y[i] =
          replaced.uniform(i) < noise
              ? static_cast<std::int64_t>(labels.below(i, static_cast<std::uint64_t>(classes_)))
              : teacher.label(samples.x.data() + i * elements_);
    return samples;
  }

  std::array<std::int64_t, 2> counts_;  // per split
  std::int64_t distinct_;
  std::int64_t classes_;
  std::vector<std::int64_t> shape_;
  double noise_;
  std::uint64_t seed_;
  std::string where_;
  std::size_t elements_ = 0;  // per sample
  mutable std::array<Samples, 2> splits_;
  mutable std::once_flag samples_made_;
  std::int64_t vocabulary_ = 0;  // > 0: samples are tokens
  Task task_ = Task::Classify;
  std::array<TokenSamples, 2> tokens_;
};

}  // namespace

PIPEWRIGHT_DATASET(synthetic, Synthetic,
                   "Made-up data: Gaussian inputs, labelled by a random two-layer network.")

}  // namespace pipewright
