// SPDX-License-Identifier: Apache-2.0
#include "core/comparison/run_difference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/records/checkpoint_files.h"
#include "core/records/run_folder.h"
#include "core/system/file.h"
#include "core/tensor_files/safetensors.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

CsvTable read_texts(const fs::path& file) {
  return read_csv(read_file(file), file.string());
}

/// All tensors of a file or of several by name, in their order.
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

void add_file(const fs::path& file, Tensors& tensors) {
  for (auto& [name, tensor] : read_safetensors(file).tensors) tensors.emplace_back(name, tensor);
}

/// The number of a stage whose replica 0 has this file in a checkpoint: 3 of "stage-3.safetensors".
std::optional<int> stage_of(const std::string& file) {
  constexpr std::string_view kBegin = "stage-", kEnd = ".safetensors";
  if (!file.starts_with(kBegin) || !file.ends_with(kEnd)) return std::nullopt;
  const std::string number = file.substr(kBegin.size(), file.size() - kBegin.size() - kEnd.size());
  if (number.empty() || number.size() > 6 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(number);
}

Tensors checkpoint_tensors(const fs::path& folder) {
  std::map<int, fs::path> files;
  for (const std::string& name : names_in(folder))
    if (const std::optional<int> stage = stage_of(name)) files.emplace(*stage, folder / name);
  Tensors tensors;
  for (const auto& [stage, file] : files) add_file(file, tensors);
  return tensors;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

std::size_t not_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return 0;
  return static_cast<std::size_t>(at::isfinite(tensor).logical_not().sum().item<std::int64_t>());
}

/// "float32" of kFloat
std::string type_text(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  switch (type) {
    case at::kDouble: return "float64";
    case at::kFloat: return "float32";
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    default: return c10::toString(type);
  }
}

/// The largest distance between values of two tensors of one shape, as far as both are finite.
std::string distance_text(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor first = a.to(at::kDouble), second = b.to(at::kDouble);
  const at::Tensor both = at::isfinite(first).logical_and(at::isfinite(second));
  if (!both.any().item<bool>()) return "in values of which none is finite in both";
  const double most = (first - second).abs().masked_select(both).max().item<double>();
  const bool all = both.all().item<bool>();
  if (most > 0)
    return concat("by at most ", number_text(most), all ? "" : " where both are finite");
  if (!all) return "in values that are not finite";
  return a.scalar_type() == b.scalar_type() ? "in the signs of zeros" : "with equal values";
}

std::string how_differs(const at::Tensor& a, const at::Tensor& b) {
  const std::string types = a.scalar_type() == b.scalar_type()
                                ? std::string()
                                : concat("in type: ", type_text(a), " and ", type_text(b), ", ");
  if (a.sizes() != b.sizes())
    return concat(types, "in shape: ", list_text(a.sizes()), " and ", list_text(b.sizes()));
  return types + distance_text(a, b);
}

TensorDifference difference_of(const std::string& when, const Tensors& a, const Tensors& b) {
  TensorDifference difference{.when = when};
  std::map<std::string, const at::Tensor*> of_b;
  for (const auto& [name, tensor] : b) of_b.emplace(name, &tensor);
  for (const auto& [name, tensor] : a) {
    const auto other = of_b.find(name);
    if (other == of_b.end()) {
      difference.only_a.push_back(name);
      continue;
    }
    ++difference.tensors;
    difference.not_finite_a += not_finite(tensor);
    difference.not_finite_b += not_finite(*other->second);
    if (!same_bytes(tensor, *other->second) && ++difference.differing == 1) {
      difference.first = name;
      difference.how = how_differs(tensor, *other->second);
    }
    of_b.erase(other);
  }
  for (const auto& [name, tensor] : b)
    if (of_b.contains(name)) difference.only_b.push_back(name);
  return difference;
}

/// Checkpoints that a run has, by their names, which are numbers of mini-batches.
std::vector<std::string> checkpoints_of(const RunFolder& run) {
  std::vector<std::string> found;
  for (const std::string& name : names_in(run.checkpoints()))
    if (is_checkpoint_folder(name)) found.push_back(name);
  std::ranges::sort(found, {}, [](const std::string& name) {
    return std::pair(name.size(), name);  // numbers with leading zeros to six digits
  });
  return found;
}

/// Whether a text of steps.csv stands for a loss that is NaN or infinite.
bool is_not_finite(const std::string& text) {
  return text == "nan" || text == "-nan" || text == "inf" || text == "-inf";
}

std::size_t rows_not_finite(const CsvTable& texts) {
  return static_cast<std::size_t>(std::ranges::count_if(
      texts.rows, [](const auto& row) { return std::ranges::any_of(row, is_not_finite); }));
}

/// "3 values of the first and 1 of the second"; "" if there are none.
std::string of_both(std::size_t a, std::size_t b, const char* what) {
  if (a == 0 && b == 0) return {};
  return concat(counted(a, what), " of the first and ", b, " of the second");
}

std::string only_text(const std::vector<std::string>& names, const char* whose) {
  if (names.empty()) return {};
  return concat("; only the ", std::string_view(whose), " has ", names.front(),
                names.size() > 1 ? concat(" and ", names.size() - 1, " more") : "");
}

}  // namespace

std::optional<LossDifference> loss_difference(const fs::path& a, const fs::path& b) {
  const fs::path file_a = RunFolder(a).steps(), file_b = RunFolder(b).steps();
  if (!is_file(file_a) || !is_file(file_b)) return std::nullopt;
  const CsvTable texts_a = read_texts(file_a), texts_b = read_texts(file_b);
  LossDifference difference{.rows_a = texts_a.rows.size(),
                            .rows_b = texts_b.rows.size(),
                            .not_finite_a = rows_not_finite(texts_a),
                            .not_finite_b = rows_not_finite(texts_b)};
  const auto field = [](const CsvTable& texts, std::size_t row, const std::string& column) {
    const std::size_t index = texts.index_of(column);
    return index < texts.columns.size() ? texts.rows[row][index] : std::string();
  };
  const std::size_t both = std::min(difference.rows_a, difference.rows_b);
  std::size_t first = both;
  for (std::size_t row = 0; row < both; ++row) {
    const auto differs = std::ranges::find_if(texts_a.columns, [&](const std::string& column) {
      return column != "lr" && texts_b.index_of(column) < texts_b.columns.size() &&
             field(texts_a, row, column) != field(texts_b, row, column);
    });
    if (differs == texts_a.columns.end() || ++difference.differing > 1) continue;
    first = row;
    difference.epoch = field(texts_a, row, "epoch");
    difference.minibatch = field(texts_a, row, "minibatch");
    difference.column = *differs;
    difference.a = field(texts_a, row, *differs);
    difference.b = field(texts_b, row, *differs);
  }
  difference.to_the_end = difference.differing > 0 && difference.differing == both - first;
  return difference;
}

std::vector<TensorDifference> tensor_differences(const fs::path& a, const fs::path& b) {
  const RunFolder run_a(a), run_b(b);
  std::vector<TensorDifference> differences;
  const std::vector<std::string> of_b = checkpoints_of(run_b);
  for (const std::string& name : checkpoints_of(run_a))
    if (std::ranges::count(of_b, name) > 0)
      differences.push_back(difference_of(concat("after ", counted(std::stoll(name), "mini-batch")),
                                          checkpoint_tensors(run_a.checkpoints() / name),
                                          checkpoint_tensors(run_b.checkpoints() / name)));
  if (!is_file(run_a.final_weights()) || !is_file(run_b.final_weights())) return differences;
  Tensors end_a, end_b;
  add_file(run_a.final_weights(), end_a);
  add_file(run_b.final_weights(), end_b);
  differences.push_back(difference_of("at the end", end_a, end_b));
  return differences;
}

std::string loss_difference_text(const LossDifference& difference) {
  const std::size_t both = std::min(difference.rows_a, difference.rows_b);
  std::string text =
      difference.rows_a == difference.rows_b
          ? ""
          : concat("; the first trained ", counted(difference.rows_a, "mini-batch"),
                   ", the second ", grouped_text(static_cast<double>(difference.rows_b)));
  if (const std::string where =
          of_both(difference.not_finite_a, difference.not_finite_b, "mini-batch");
      !where.empty())
    text += concat("; the loss is not finite in ", where);
  if (both == 0) return concat("losses      not compared: no mini-batch is in both", text, "\n");
  if (difference.differing == 0)
    return concat("losses      equal in ", counted(both, "mini-batch"), text, "\n");
  return concat("losses      differ in ", difference.differing, " of ", counted(both, "mini-batch"),
                ", first in mini-batch ", difference.minibatch, " of epoch ", difference.epoch,
                " (counted from 0): ", difference.column, " ", difference.a, " and ", difference.b,
                text, "\n");
}

std::string tensor_difference_text(const TensorDifference& difference) {
  std::string text = concat("tensors     ", difference.when, ": ");
  if (difference.tensors == 0)
    text += "none that both have";
  else if (difference.differing == 0)
    text += concat("equal in all ", difference.tensors, " that both have");
  else
    text += concat(difference.differing, " of ", difference.tensors, " differ, first ",
                   difference.first, ", ", difference.how);
  if (const std::string values = of_both(difference.not_finite_a, difference.not_finite_b, "value");
      !values.empty())
    text += concat("; ", values, " are not finite");
  return concat(text, only_text(difference.only_a, "first"), only_text(difference.only_b, "second"),
                "\n");
}

std::string losses_in_short(const LossDifference& difference) {
  const std::size_t both = std::min(difference.rows_a, difference.rows_b);
  const bool longer = difference.rows_a != difference.rows_b;
  if (both == 0) return "no mini-batch is in both";
  if (difference.differing == 0)
    return longer ? concat("losses are equal in the ", counted(both, "mini-batch"),
                           " that both have trained")
                  : std::string("losses are equal");
  const std::string first = concat("mini-batch ", difference.minibatch, " of epoch ",
                                   difference.epoch, " (counted from 0)");
  if (difference.to_the_end) return concat("losses differ from ", first, " on");
  return concat("losses differ in ", difference.differing, " of ", counted(both, "mini-batch"),
                ", first in ", first);
}

}  // namespace pipewright
