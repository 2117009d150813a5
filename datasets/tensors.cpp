// SPDX-License-Identifier: Apache-2.0
/// Samples from one safetensors file, which any other program can write in a few lines.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/stage/dataset.h"
#include "core/stage/files/safetensors.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;  // of a vocabulary

/// The samples of one split: x [n, …] floating-point, or [n, tokens] integers; y [n] integers, or
/// one for each token, kNoTarget where there is none.
struct SampleTensors {
  at::Tensor x;
  at::Tensor y;
};

/// Reads and checks the tensors of a file; every error has the file's name.
class SampleFile {
 public:
  explicit SampleFile(const std::filesystem::path& path)
      : path_(path), file_(read_safetensors(path)) {}

  SampleTensors split(const std::string& name) const {
    const at::Tensor& x = tensor(name + ".x");
    const at::Tensor& y = tensor(name + ".y");
    const bool tokens = x.scalar_type() == at::kLong;
    if (!x.is_floating_point() && !tokens)
      fail(name + ".x", concat("has type ", std::string(c10::toString(x.scalar_type())),
                               ", must be floating, or Long for tokens"));
    if (x.dim() < 1 || x.numel() == 0 || (tokens && x.dim() != 2))
      fail(name + ".x",
           concat("has shape ", list_text(x.sizes().vec()), ", must be ",
                  tokens ? "[samples, tokens]" : "[samples, ...]", " with something in it"));
    const bool each = tokens && y.dim() == 2;  // a target for each token
    if (!(each ? y.sizes() == x.sizes() : y.dim() == 1 && y.size(0) == x.size(0)))
      fail(name + ".y", concat("has shape ", list_text(y.sizes().vec()), ", must be [", x.size(0),
                               "]: one label for each sample of ", name, ".x",
                               tokens ? ", or one for each token" : ""));
    if (!c10::isIntegralType(y.scalar_type(), /*includeBool=*/false))
      fail(name + ".y",
           concat("has type ", std::string(c10::toString(y.scalar_type())), ", must be integers"));
    check_least(name + ".y", each ? y.masked_fill(y.eq(kNoTarget), 0) : y, "label");
    if (tokens) check_least(name + ".x", x, "token");
    return {x, y};
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::Data, "tensor '" + name + "' " + what, path_.string());
  }

 private:
  void check_least(const std::string& name, const at::Tensor& numbers, const char* what) const {
    const auto least = numbers.min().item<std::int64_t>();
    if (least >= 0) return;
    const std::int64_t per_record = numbers.numel() / numbers.size(0);
    fail(name, concat("record ", numbers.argmin().item<std::int64_t>() / per_record,
                      " (counted from 0) has the negative ", what, " ", least));
  }

  const at::Tensor& tensor(const std::string& name) const {
    if (const at::Tensor* found = file_.find(name)) return *found;
    std::vector<std::string> known;
    for (const auto& [key, unused] : file_.tensors) known.push_back(key);
    throw Error(ErrorKind::Data,
                concat("there is no tensor '", name,
                       "' in it; train.x, train.y, test.x and test.y are "
                       "needed, and there are ",
                       join(known, ", ")),
                path_.string());
  }

  std::filesystem::path path_;
  TensorFile file_;
};

class TensorDataset final : public Dataset {
 public:
  explicit TensorDataset(Options& options)
      : file_(options.required_path(
            "file",
            "A safetensors file with train.x, train.y, test.x and test.y: x "
            "[samples, ...] floating, or [samples, tokens] int64; y [samples] "
            "integers from 0, or one for each token, -100 for none.")) {}

  void open(const DatasetRequest&) override {
    const SampleFile file(file_);
    SampleTensors train = file.split("train"), test = file.split("test");
    if (train.x.sizes().slice(1) != test.x.sizes().slice(1))
      file.fail("test.x", concat("has samples of shape ", list_text(test.x.sizes().slice(1).vec()),
                                 ", train.x of ", list_text(train.x.sizes().slice(1).vec())));
    if ((train.x.scalar_type() == at::kLong) != (test.x.scalar_type() == at::kLong))
      file.fail("test.x", "must be of tokens if and only if train.x is");
    if (train.y.dim() != test.y.dim())
      file.fail("test.y", "must have a target for each token if and only if train.y has");
    classes_ = vocabulary_ = 0;
    for (const SampleTensors* samples : {&train, &test}) {
      if (samples->x.scalar_type() == at::kLong) {
        const auto largest = samples->x.max().item<std::int64_t>();
        if (largest >= kMostTokens)
          file.fail(samples == &train ? "train.x" : "test.x", concat("has the token ", largest));
        vocabulary_ = std::max(vocabulary_, 1 + largest);
      }
      const auto most = samples->y.max().item<std::int64_t>();
      if (most == std::numeric_limits<std::int64_t>::max())
        file.fail(samples == &train ? "train.y" : "test.y", concat("has the label ", most));
      classes_ = std::max(classes_, 1 + most);
    }
    train_ = std::move(train);
    test_ = std::move(test);
  }

  std::int64_t size(Split split) const override { return samples(split).y.size(0); }
  std::vector<std::int64_t> sample_shape() const override {
    return train_.x.sizes().slice(1).vec();
  }
  std::int64_t classes() const override { return classes_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Task task() const override { return train_.y.dim() == 2 ? Task::Continue : Task::Classify; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const SampleTensors& from = samples(split);
    const auto count = static_cast<std::int64_t>(indices.size());
    std::vector<std::int64_t> shape = from.x.sizes().vec();
    shape[0] = count;
    Batch batch{{at::empty(shape, from.x.scalar_type())}, {}};
    const at::Tensor chosen = at::empty({count}, at::kLong);
    std::ranges::copy(indices, chosen.mutable_data_ptr<std::int64_t>());
    batch.y = from.y.index_select(0, chosen).to(at::kLong);
    const std::size_t row = from.x.nbytes() / static_cast<std::size_t>(from.x.size(0));
    const auto* in = static_cast<const char*>(from.x.const_data_ptr());
    auto* out = static_cast<char*>(batch.x[0].mutable_data_ptr());
    for (const std::int64_t index : indices) {
      PIPEWRIGHT_CHECK(index >= 0 && index < from.y.size(0), "sample ", index);
      std::memcpy(out, in + static_cast<std::size_t>(index) * row, row);
      out += row;
    }
    return batch;
  }

 private:
  const SampleTensors& samples(Split split) const { return split == Split::Train ? train_ : test_; }

  std::filesystem::path file_;
  SampleTensors train_, test_;
  std::int64_t classes_ = 0, vocabulary_ = 0;
};

}  // namespace

PIPEWRIGHT_DATASET(tensors, TensorDataset,
                   "Samples from a safetensors file: train.x, train.y, test.x, test.y.")

}  // namespace pipewright
