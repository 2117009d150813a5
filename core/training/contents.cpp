// SPDX-License-Identifier: Apache-2.0
#include "core/training/contents.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "core/base/checksum.h"
#include "core/base/text.h"
#include "core/experiment/catalogue.h"
#include "core/system/file_checksum.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

constexpr std::int64_t kSamples = 32;  // samples of a split

void add(std::string& text, const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  text +=
      concat("\n", at::toString(values.scalar_type()), " ", shape_text(values.sizes().vec()), "\n");
  text.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
}

/// Digest of samples, read one at a time because their sizes may differ.
std::string samples_of(const Dataset& dataset) {
  std::string text =
      concat(shape_text(dataset.sample_shape()), " ", dataset.classes(), " ", dataset.vocabulary());
  for (const Split split : {Split::Train, Split::Test}) {
    const std::int64_t size = dataset.size(split);
    text += concat("\n", size, " samples");
    std::set<std::int64_t> chosen;
    for (std::int64_t i = 0; i < kSamples && size > 0; ++i)
      chosen.insert(i * (size - 1) / (kSamples - 1));
    for (const std::int64_t index : chosen) {
      const Batch sample = dataset.batch(split, std::array{index}, nullptr);
      for (const at::Tensor& x : sample.x) add(text, x);
      add(text, sample.y);
    }
  }
  return "samples:" + sha256(text);
}

/// Digest of the files of a folder, such as an imported module: names and contents.
std::string files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().filename()] = file_checksum(entry.path(), Checksum::Kind::Sha256);
  std::string text;
  for (const auto& [name, checksum] : files) text += concat(name, " ", checksum, "\n");
  return "files:" + sha256(text);
}

/// Whether a path's content is compared. Paths of the layout are not, nor files with an option
/// `sha256`, which is compared itself.
bool is_compared(const std::string& path, const Value& resolved) {
  const std::string section = path.substr(0, path.rfind('.'));
  const Value* const digest = resolved.find_path(section + ".sha256");
  return !path.starts_with("pipeline.") && (digest == nullptr || digest->text.empty());
}

}  // namespace

Value contents_of(const Experiment& experiment, const Dataset& dataset) {
  Value contents = Value::mapping();
  for (const std::string& path : path_options(experiment.resolved)) {
    const Value* const given = experiment.resolved.find_path(path);
    if (given == nullptr || given->text.empty() || !is_compared(path, experiment.resolved))
      continue;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(given->text, ignored))
      contents.at_or_add(path) =
          Value::of("sha256:" + file_checksum(given->text, Checksum::Kind::Sha256));
    else if (path.starts_with("model.") && std::filesystem::is_directory(given->text, ignored))
      contents.at_or_add(path) = Value::of(files_of(given->text));
    else if (path.starts_with("dataset."))
      contents.at_or_add("dataset") = Value();
  }
  if (Value* samples = contents.find("dataset")) *samples = Value::of(samples_of(dataset));
  return contents;
}

std::string changed_contents(const Value& before, const Value& now) {
  std::vector<std::string> changed;
  for (const auto& [of, content] : now.fields) {
    const Value* const old = before.find(of);
    if (old == nullptr || *old != content) changed.push_back(of);
  }
  for (const auto& [of, content] : before.fields)
    if (now.find(of) == nullptr) changed.push_back(of);
  return join(changed, " and ");
}

}  // namespace pipewright
