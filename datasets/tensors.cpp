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

/// The samples of one split: x [n, …] floating-point, y [n] integers, in the file's types.
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
    if (!x.is_floating_point())
      fail(name + ".x",
           concat("has type ", std::string(c10::toString(x.scalar_type())), ", must be floating"));
    if (x.dim() < 1 || x.numel() == 0)
      fail(name + ".x", concat("has shape ", list_text(x.sizes().vec()),
                               ", must be [samples, ...] with something in it"));
    if (y.dim() != 1 || y.size(0) != x.size(0))
      fail(name + ".y", concat("has shape ", list_text(y.sizes().vec()), ", must be [", x.size(0),
                               "]: one label for each sample of ", name, ".x"));
    if (!c10::isIntegralType(y.scalar_type(), /*includeBool=*/false))
      fail(name + ".y",
           concat("has type ", std::string(c10::toString(y.scalar_type())), ", must be integers"));
    if (const auto least = y.min().item<std::int64_t>(); least < 0)
      fail(name + ".y", concat("record ", y.argmin().item<std::int64_t>(),
                               " (counted from 0) has the negative label ", least));
    return {x, y};
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::Data, "tensor '" + name + "' " + what, path_.string());
  }

 private:
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
      : file_(
            options.required_path("file",
                                  "A safetensors file with train.x, train.y, test.x and test.y: x "
                                  "[samples, ...] floating, y [samples] integers from 0.")) {}

  void open(const DatasetRequest&) override {
    const SampleFile file(file_);
    SampleTensors train = file.split("train"), test = file.split("test");
    if (train.x.sizes().slice(1) != test.x.sizes().slice(1))
      file.fail("test.x", concat("has samples of shape ", list_text(test.x.sizes().slice(1).vec()),
                                 ", train.x of ", list_text(train.x.sizes().slice(1).vec())));
    classes_ = 0;
    for (const SampleTensors* samples : {&train, &test}) {
      const auto most = samples->y.max().item<std::int64_t>();
      if (most == std::numeric_limits<std::int64_t>::max())
        file.fail(samples == &train ? "train.y" : "test.y", concat("has the label ", most));
      classes_ = std::max(classes_, 1 + most);
    }
    train_ = std::move(train);
    test_ = std::move(test);
  }

  std::int64_t size(Split split) const override { return samples(split).y.numel(); }
  std::vector<std::int64_t> sample_shape() const override {
    return train_.x.sizes().slice(1).vec();
  }
  std::int64_t classes() const override { return classes_; }

  Batch batch(Split split, std::span<const std::int64_t> indices,
              const RandomStream*) const override {
    const SampleTensors& from = samples(split);
    const auto count = static_cast<std::int64_t>(indices.size());
    std::vector<std::int64_t> shape = from.x.sizes().vec();
    shape[0] = count;
    Batch batch{{at::empty(shape, from.x.scalar_type())}, at::empty({count}, at::kLong)};
    const at::Tensor chosen = at::empty({count}, at::kLong);
    std::ranges::copy(indices, chosen.mutable_data_ptr<std::int64_t>());
    batch.y.copy_(from.y.index_select(0, chosen));
    const std::size_t row = from.x.nbytes() / static_cast<std::size_t>(from.x.size(0));
    const auto* in = static_cast<const char*>(from.x.const_data_ptr());
    auto* out = static_cast<char*>(batch.x[0].mutable_data_ptr());
    for (const std::int64_t index : indices) {
      PIPEWRIGHT_CHECK(index >= 0 && index < from.y.numel(), "sample ", index);
      std::memcpy(out, in + static_cast<std::size_t>(index) * row, row);
      out += row;
    }
    return batch;
  }

 private:
  const SampleTensors& samples(Split split) const { return split == Split::Train ? train_ : test_; }

  std::filesystem::path file_;
  SampleTensors train_, test_;
  std::int64_t classes_ = 0;
};

}  // namespace

PIPEWRIGHT_DATASET(tensors, TensorDataset,
                   "Samples from a safetensors file: train.x, train.y, test.x, test.y.")

}  // namespace pipewright
