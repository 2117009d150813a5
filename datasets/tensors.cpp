// SPDX-License-Identifier: Apache-2.0
/// Samples from files of arrays, which any other program can write in a few lines.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/nn/dataset.h"
#include "core/tensors/torch.h"
#include "datasets/arrays/further_inputs.h"
#include "datasets/arrays/sample_source.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;  // of a vocabulary
constexpr double kMostWhole = 9007199254740992;              // 2^53: larger doubles may be rounded

bool is_tokens(const SamplePart& part) {
  return part.x.scalar_type() == at::kLong;
}

template <class... Parts>
[[noreturn]] void refuse(const SamplePart& part, const std::string& name, const Parts&... what) {
  throw data_error(part.path, "tensor '", name, "' ", what...);
}

std::string type_text(const at::Tensor& tensor) {
  return c10::toString(tensor.scalar_type());
}

/// "record 7 (counted from 0)" of the number with that index.
std::string record_text(const at::Tensor& numbers, std::int64_t index) {
  return concat("record ", index / (numbers.numel() / numbers.size(0)), " (counted from 0)");
}

void check_least(const SamplePart& part, const std::string& name, const at::Tensor& numbers,
                 const char* what) {
  const auto least = numbers.min().item<std::int64_t>();
  if (least >= 0) return;
  refuse(part, name, record_text(numbers, numbers.argmin().item<std::int64_t>()),
         " has the negative ", what, " ", least);
}

/// Refuses numbers that are not finite in the type in which the model computes: a training would
/// call its learning rate too large.
void check_finite(const SamplePart& part, const std::string& name, const at::Tensor& numbers,
                  at::ScalarType type) {
  constexpr std::int64_t kAtOnce = 1 << 22;
  if (numbers.is_meta() || !numbers.is_floating_point()) return;
  const at::Tensor flat = numbers.flatten();
  for (std::int64_t begin = 0; begin < flat.numel(); begin += kAtOnce) {
    const at::Tensor some = flat.narrow(0, begin, std::min(kAtOnce, flat.numel() - begin));
    const at::Tensor wrong = some.to(type).isfinite().logical_not();
    if (!wrong.any().item<bool>()) continue;
    const std::int64_t index = begin + wrong.to(at::kByte).argmax().item<std::int64_t>();
    std::vector<std::int64_t> place;  // within the sample
    std::int64_t rest = index % (numbers.numel() / numbers.size(0));
    for (std::int64_t axis = numbers.dim() - 1; axis > 0; --axis) {
      place.insert(place.begin(), rest % numbers.size(axis));
      rest /= numbers.size(axis);
    }
    const auto number = flat[index].item<double>();
    refuse(part, name, record_text(numbers, index), " has ", number,
           place.empty()       ? ""
           : place.size() == 1 ? concat(" in column ", place[0], " (from 0, too)")
                               : concat(" at ", list_text(place), " (from 0, too)"),
           std::isfinite(number) ? concat(", which is too large for ", c10::toString(type))
                                 : std::string(),
           "; expected finite numbers");
  }
}

/// Makes x floating, or leaves it int64: tokens.
void settle_inputs(SamplePart& part, at::ScalarType model) {
  const at::ScalarType type = part.x.scalar_type();
  if (type == at::kByte || type == at::kChar || type == at::kShort || type == at::kBool)
    part.x = part.x.to(at::kFloat);
  if (!part.x.is_floating_point() && !is_tokens(part))
    refuse(part, part.x_name, "has type ", type_text(part.x),
           ", must be floating, integers of at most 16 bits, or Long for tokens");
  if (part.x.dim() < 1 || part.x.numel() == 0 || (is_tokens(part) && part.x.dim() != 2))
    refuse(part, part.x_name, "has shape ", list_text(part.x.sizes().vec()), ", must be ",
           is_tokens(part) ? "[samples, tokens] of int64 tokens, or floating" : "[samples, ...]",
           is_tokens(part) ? "" : " with something in it");
  if (is_tokens(part)) check_least(part, part.x_name, part.x, "token");
  check_finite(part, part.x_name, part.x, model);
}

/// Makes y real numbers [samples, targets].
void settle_numbers(SamplePart& part, at::ScalarType model) {
  at::Tensor& y = part.y;
  if (y.dim() == 1) y = y.unsqueeze(1);
  if (y.dim() != 2 || y.size(0) != part.x.size(0) || y.size(1) == 0)
    refuse(part, part.y_name, "has shape ", list_text(y.sizes().vec()), ", must be [",
           part.x.size(0), "] or [", part.x.size(0), ", targets]: one row for each sample of ",
           part.x_name);
  if (!y.is_floating_point()) y = y.to(at::kDouble);
  check_finite(part, part.y_name, y, model);
}

/// Refuses texts other than two, and returns which of them counts as 1.
std::string remark_on_texts(const SamplePart& part) {
  const std::set<std::string> names(part.texts.begin(), part.texts.end());
  if (names.size() > 2)
    refuse(part, part.y_name, "has ", names.size(),
           " texts; the loss binary_cross_entropy takes one label of two, and cross_entropy has a "
           "class for each");
  const auto one = part.y.eq(1).to(at::kByte).argmax().item<std::int64_t>();
  return concat(part.y_name, " of ", part.path, ": the label 1 is '",
                printable(part.texts[static_cast<std::size_t>(one)]), "'");
}

/// Makes y labels of 0 and 1, [samples, …].
void settle_binary_labels(SamplePart& part) {
  at::Tensor& y = part.y;
  if (!part.texts.empty()) part.remark = remark_on_texts(part);
  if (y.dim() < 1 || y.size(0) != part.x.size(0) || y.numel() == 0)
    refuse(part, part.y_name, "has shape ", list_text(y.sizes().vec()), ", must be [",
           part.x.size(0), "], [", part.x.size(0),
           ", labels] or the shape of the model's output, with 0 or 1 for each label");
  const at::Tensor wrong = y.ne(0).logical_and_(y.ne(1)).flatten();
  if (wrong.any().item<bool>()) {
    const auto index = wrong.to(at::kByte).argmax().item<std::int64_t>();
    refuse(part, part.y_name, record_text(y, index), " has the label ",
           y.flatten()[index].item<double>(), "; the loss binary_cross_entropy takes 0 and 1");
  }
  y = y.to(at::kByte);
}

/// Makes whole numbers of the classes in a file of text.
void settle_labels_of_text(SamplePart& part) {
  const at::Tensor wrong = (part.y.floor() != part.y).logical_or(part.y.abs() > kMostWhole);
  if (wrong.any().item<bool>()) {
    const auto index = wrong.to(at::kByte).argmax().item<std::int64_t>();
    refuse(part, part.y_name, record_text(part.y, index), " has the target ",
           part.y.flatten()[index].item<double>(),
           ", which is no class; for real-valued targets set loss: {name: mse}");
  }
  part.y = part.y.to(at::kLong);
}

/// What to know of samples all of whose targets are left out; throws if there is no other sample.
std::string remark_on_targets(const SamplePart& part) {
  const std::int64_t all = part.y.size(0),
                     without = all - part.y.ne(kNoTarget).any(1).sum().item<std::int64_t>();
  if (without == 0) return {};
  if (without == all)
    refuse(part, part.y_name, "has no target: all are ", kNoTarget, ", which is none");
  return concat(part.y_name, " of ", part.path, ": ", without, " of ", counted(all, "sample"),
                without == 1 ? " has" : " have",
                " no target; a mean over samples counts a loss of 0 for each, loss: {name: "
                "cross_entropy, average: tokens} leaves them out");
}

/// Makes y int64 classes [samples], or one for each token.
void settle_labels(SamplePart& part) {
  at::Tensor& y = part.y;
  const bool each = is_tokens(part) && y.dim() == 2;  // a target for each token
  if (!(each ? y.sizes() == part.x.sizes() : y.dim() == 1 && y.size(0) == part.x.size(0)))
    refuse(part, part.y_name, "has shape ", list_text(y.sizes().vec()), ", must be [",
           part.x.size(0), "]: one label for each sample of ", part.x_name,
           is_tokens(part) ? ", or one for each token" : "",
           y.dim() > 1
               ? "; for several labels of a sample, 0 or 1, set loss: {name: binary_cross_entropy}"
               : "");
  if (part.of_text) settle_labels_of_text(part);
  if (!c10::isIntegralType(y.scalar_type(), /*includeBool=*/false))
    refuse(part, part.y_name, "has type ", type_text(y), ", must be integers",
           y.is_floating_point() ? "; for real-valued targets set loss: {name: mse}" : "");
  check_least(part, part.y_name, each ? y.masked_fill(y.eq(kNoTarget), 0) : y, "label");
  if (each) part.remark = remark_on_targets(part);
}

/// Both parts, settled, and what is counted in them.
struct SettledSamples {
  std::array<SamplePart, 2> parts;
  Task targets = Task::Classify;  // or Regress or Label
  std::int64_t classes = 0;       // Dataset::classes()
  std::int64_t least_label = std::numeric_limits<std::int64_t>::max();
  std::int64_t vocabulary = 0;  // 0: inputs are no tokens
  std::vector<std::string> remarks;
};

void count_tokens_and_classes(const SamplePart& part, SettledSamples& samples) {
  if (is_tokens(part)) {
    const auto largest = part.x.max().item<std::int64_t>();
    if (largest >= kMostTokens) refuse(part, part.x_name, "has the token ", largest);
    samples.vocabulary = std::max(samples.vocabulary, 1 + largest);
  }
  if (samples.targets != Task::Classify) {
    samples.classes = part.y.dim() == 1 ? 1 : part.y.size(1);
    return;
  }
  const auto most = part.y.max().item<std::int64_t>();
  if (most == std::numeric_limits<std::int64_t>::max())
    refuse(part, part.y_name, "has the label ", most);
  samples.classes = std::max(samples.classes, 1 + most);
  // Of tokens many may never be targets, and texts are numbered here.
  const bool counted_there = part.y.dim() == 1 && part.texts.empty();
  samples.least_label =
      counted_there ? std::min(samples.least_label, part.y.min().item<std::int64_t>()) : 0;
}

/// Throws unless samples of both parts have the same form.
void check_alike(const SamplePart& train, const SamplePart& test, Task targets) {
  if (train.x.sizes().slice(1) != test.x.sizes().slice(1))
    refuse(test, test.x_name, "has samples of shape ", list_text(test.x.sizes().slice(1).vec()),
           ", ", train.x_name, " of ", list_text(train.x.sizes().slice(1).vec()));
  if (is_tokens(train) != is_tokens(test))
    refuse(test, test.x_name, "must be of tokens if and only if ", train.x_name, " is");
  const bool classes = targets == Task::Classify;
  if (classes && train.y.dim() != test.y.dim())
    refuse(test, test.y_name, "must have a target for each token if and only if ", train.y_name,
           " has");
  if (!classes && train.y.sizes().slice(1) != test.y.sizes().slice(1))
    refuse(test, test.y_name, "has targets of shape ", list_text(test.y.sizes().slice(1).vec()),
           " for a sample, ", train.y_name, " has ", list_text(train.y.sizes().slice(1).vec()));
}

class TensorDataset final : public Dataset {
 public:
  explicit TensorDataset(Options& options) : source_(options) {}

  void open(const DatasetRequest& request) override {
    input_names_.clear();
    for (const NamedInput& input : request.model_inputs) input_names_.push_back(input.name);
    const std::vector<std::string> x{"x"};
    samples_ = settled(
        source_.read(input_names_.empty() ? x : input_names_, request.targets != Task::Regress),
        request.targets, request.model_numbers);
    if (input_names_.empty()) return;
    for (SamplePart& part : samples_.parts) {
      settle_further(part, std::span(request.model_inputs).subspan(1));
      for (const auto& [name, input] : part.further)
        check_finite(part, name, input, request.model_numbers);
    }
  }

  SampleForm form(Task targets) const override {
    try {
      const SettledSamples samples = settled(
          source_.read({"x"}, targets != Task::Regress, SampleDetail::Form), targets, at::kDouble);
      std::vector<std::int64_t> shape = samples.parts[0].x.sizes().slice(1).vec();
      if (shape.empty()) shape = {1};
      return {.shape = shape, .classes = samples.classes, .vocabulary = samples.vocabulary};
    } catch (const Error&) {
      return {};
    }
  }

  std::int64_t size(Split split) const override {
    const SamplePart& from = part(split);
    return from.rows.empty() ? from.y.size(0) : std::ssize(from.rows);
  }
  std::vector<std::int64_t> sample_shape() const override {
    return samples_.parts[0].x.sizes().slice(1).vec();
  }
  std::int64_t classes() const override { return samples_.classes; }
  std::int64_t vocabulary() const override { return samples_.vocabulary; }
  std::vector<std::string> input_names() const override { return input_names_; }
  std::vector<std::string> remarks() const override { return samples_.remarks; }
  Task task() const override {
    if (samples_.targets != Task::Classify) return samples_.targets;
    return samples_.parts[0].y.dim() == 2 ? Task::Continue : Task::Classify;
  }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const SamplePart& from = part(split);
    const auto count = static_cast<std::int64_t>(indices.size());
    const at::Tensor chosen = at::empty({count}, at::kLong);
    auto* const rows = chosen.mutable_data_ptr<std::int64_t>();
    std::ranges::transform(indices, rows, [&](std::int64_t index) { return row_of(from, index); });
    Batch batch{{copied(from.x, {rows, indices.size()})}, from.y.index_select(0, chosen)};
    for (const auto& [name, input] : from.further)
      batch.x.push_back(copied(input, {rows, indices.size()}));
    if (samples_.targets == Task::Classify) batch.y = batch.y.to(at::kLong);
    return batch;
  }

 private:
  /// Copies these rows of a tensor.
  static at::Tensor copied(const at::Tensor& from, std::span<const std::int64_t> rows) {
    std::vector<std::int64_t> shape = from.sizes().vec();
    shape[0] = std::ssize(rows);
    at::Tensor made = at::empty(shape, from.scalar_type());
    const std::size_t bytes = from.nbytes() / static_cast<std::size_t>(from.size(0));
    const auto* in = static_cast<const char*>(from.const_data_ptr());
    auto* out = static_cast<char*>(made.mutable_data_ptr());
    for (const std::int64_t row : rows) {
      std::memcpy(out, in + static_cast<std::size_t>(row) * bytes, bytes);
      out += bytes;
    }
    return made;
  }

  static SettledSamples settled(std::array<SamplePart, 2> parts, Task targets,
                                at::ScalarType model) {
    SettledSamples samples{.parts = std::move(parts), .targets = targets};
    for (SamplePart& part : samples.parts) {
      settle_inputs(part, model);
      if (targets == Task::Regress)
        settle_numbers(part, model);
      else if (targets == Task::Label)
        settle_binary_labels(part);
      else
        settle_labels(part);
      count_tokens_and_classes(part, samples);
      if (!part.remark.empty()) samples.remarks.push_back(part.remark);
    }
    check_alike(samples.parts[0], samples.parts[1], targets);
    if (const SamplePart& train = samples.parts[0]; targets == Task::Classify)
      if (const std::string remark = unused_class_remark(samples.least_label, samples.classes - 1);
          !remark.empty())
        samples.remarks.push_back(concat(train.y_name, " of ", train.path, ": ", remark));
    std::ranges::sort(samples.remarks);  // both parts may be of one file
    const auto again = std::ranges::unique(samples.remarks);
    samples.remarks.erase(again.begin(), again.end());
    return samples;
  }

  const SamplePart& part(Split split) const {
    return samples_.parts[split == Split::Train ? 0 : 1];
  }

  static std::int64_t row_of(const SamplePart& part, std::int64_t index) {
    const std::int64_t all = part.rows.empty() ? part.y.size(0) : std::ssize(part.rows);
    PIPEWRIGHT_CHECK(index >= 0 && index < all, "sample ", index);
    return part.rows.empty() ? index : part.rows[static_cast<std::size_t>(index)];
  }

  SampleSource source_;
  SettledSamples samples_;
  std::vector<std::string> input_names_;
};

}  // namespace

PIPEWRIGHT_DATASET(tensors, TensorDataset,
                   "Samples from your files: .safetensors, .npy, .npz, .csv or .tsv.")

}  // namespace pipewright
