// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/sample_source.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/stage/files/safetensors.h"
#include "core/stage/torch.h"
#include "datasets/arrays/npy.h"

namespace pipewright {
namespace {

using NamedArrays = std::vector<std::pair<std::string, at::Tensor>>;

bool is_npy(const std::filesystem::path& path) {
  return path.extension() == ".npy";
}
bool is_csv(const std::filesystem::path& path) {
  return path.extension() == ".csv";
}

NamedArrays read_arrays(const std::filesystem::path& path) {
  return path.extension() == ".npz" ? read_npz(path) : read_safetensors(path).tensors;
}

/// The array with one of two names, or null.
const NamedArrays::value_type* find(const NamedArrays& arrays, const std::string& name,
                                    const std::string& other) {
  const auto found = std::ranges::find_if(
      arrays, [&](const auto& array) { return array.first == name || array.first == other; });
  return found == arrays.end() ? nullptr : &*found;
}

/// As find(); throws if there is none. Python's keywords cannot be called train.x, so arrays of
/// numpy.savez may be called x_train.
const NamedArrays::value_type& named_array(const NamedArrays& arrays, const std::string& part,
                                           const std::string& what,
                                           const std::filesystem::path& path) {
  const std::string name = part.empty() ? what : concat(part, ".", what);
  if (const auto* found = find(arrays, name, part.empty() ? what : concat(what, "_", part)))
    return *found;
  std::vector<std::string> known;
  for (const auto& [key, unused] : arrays) known.push_back(key);
  throw Error(
      ErrorKind::Data,
      concat("there is no tensor '", name, "' in it; ",
             part.empty() ? "x and y" : "train.x, train.y, test.x and test.y", " are needed, ",
             part.empty() ? "" : "or x and y to be split, ", "and there are ", join(known, ", ")),
      path.string());
}

SamplePart part_of(const NamedArrays& arrays, const std::string& part,
                   const std::filesystem::path& path) {
  const auto &x = named_array(arrays, part, "x", path), &y = named_array(arrays, part, "y", path);
  return {
      .path = path.string(), .x_name = x.first, .y_name = y.first, .x = x.second, .y = y.second};
}

/// Reads a column, or a list of them: names, and numbers from 1.
std::vector<CsvColumn> read_columns(Options& options, const std::string& name,
                                    const std::string& help) {
  const Value given = options.any(name, Value::sequence(), help);
  const bool list = given.is(Value::Kind::Sequence);
  const std::string option = "dataset." + name;
  std::vector<CsvColumn> columns;
  for (std::size_t i = 0; i < (list ? given.items.size() : 1); ++i) {
    const Value& value = list ? given.items[i] : given;
    const std::string where = (options.given(name) ? value.place : options.where(name)).text();
    if (value.is(Value::Kind::Text))
      columns.push_back({0, value.text, option, where});
    else if (value.is(Value::Kind::Integer) && value.integer > 0)
      columns.push_back({value.integer, {}, option, where});
    else
      options.problem(
          list ? concat(name, "[", i, "]") : name,
          concat("is ", value.shown(), "; expected the name of a column, or its number, from 1"));
  }
  return columns;
}

char read_separator(Options& options) {
  const std::string name =
      options.choice("separator", {"comma", "semicolon", "tab"}, "comma",
                     "Of .csv files: what stands between two fields of a line.");
  return name == "tab" ? '\t' : name == "semicolon" ? ';' : ',';
}

}  // namespace

SampleSource::SampleSource(Options& options)
    : file_(options.required_path(
          "file",
          "A file of samples. .safetensors and .npz have train.x, train.y, test.x and test.y "
          "(x_train and so on in .npz), or x and y, to be split; .npy has x; .csv has a row for "
          "each sample. x: [samples, ...] floating or small integers, or [samples, tokens] int64; "
          "y: [samples] integers from 0, or one for each token, -100 for none; real numbers "
          "[samples] or [samples, targets] with the losses mse and l1.")),
      targets_(options.path("target_file", "", "Where file is a .npy file: that of y.")),
      test_file_(options.path(
          "test_file", "",
          "A file of the test samples, where file has the training samples only: x and y.")),
      test_targets_(
          options.path("test_target_file", "", "Where test_file is a .npy file: that of its y.")),
      split_(options, /*fallback=*/0),
      columns_{read_columns(options, "columns",
                            "Of .csv files: the columns of x, a list of names in the first line "
                            "or of numbers from 1; []: all but the target."),
               read_columns(options, "target",
                            "Of .csv files: the column of y, or a list of several for the losses "
                            "mse and l1; []: the last one.")},
      separator_(read_separator(options)),
      at_file_(options.where("file").text()) {
  check(options);
}

/// Reports options that contradict each other.
void SampleSource::check(Options& options) const {
  if (split_.wanted() && !test_file_.empty())
    options.problem("split", "is given beside dataset.test_file; expected one of them");
  const auto pair = [&](const std::filesystem::path& x, const std::filesystem::path& y,
                        const char* of_x, const char* of_y) {
    if (is_npy(x) && y.empty())
      options.problem(of_x, concat("is a .npy file, which has x only; expected dataset.", of_y,
                                   " beside it, a .npy file of y"));
    else if (!y.empty() && (!is_npy(x) || !is_npy(y)))
      options.problem(of_y, concat("is for .npy files; expected dataset.", of_x, " and dataset.",
                                   of_y, " to be such, or no dataset.", of_y));
  };
  pair(file_, targets_, "file", "target_file");
  pair(test_file_, test_targets_, "test_file", "test_target_file");
  // A resolved experiment names them with their defaults.
  for (const auto& [name, set] :
       {std::pair("columns", !columns_.inputs.empty()),
        std::pair("target", !columns_.targets.empty()), std::pair("separator", separator_ != ',')})
    if (set && !is_csv(file_))
      options.problem(name, "is for .csv files; expected such a dataset.file");
}

std::array<SamplePart, 2> SampleSource::read() const {
  if (!test_file_.empty())
    return {read_whole(file_, targets_), read_whole(test_file_, test_targets_)};
  if (is_npy(file_) || is_csv(file_)) return halves(read_whole(file_, targets_));
  return read_named();
}

/// Reads a file that may have both parts.
std::array<SamplePart, 2> SampleSource::read_named() const {
  const NamedArrays arrays = read_arrays(file_);
  if (find(arrays, "x", "x") != nullptr) return halves(part_of(arrays, "", file_));
  if (split_.wanted())
    throw Error(ErrorKind::Experiment,
                concat("dataset.split is for files of one part, with the arrays x and y, which ",
                       file_.filename().string(), " is not"),
                split_.where());
  return {part_of(arrays, "train", file_), part_of(arrays, "test", file_)};
}

SamplePart SampleSource::read_whole(const std::filesystem::path& file,
                                    const std::filesystem::path& targets) const {
  if (is_npy(file))
    return {.path = file.string(),
            .x_name = "x",
            .y_name = "y",
            .x = read_npy(file),
            .y = read_npy(targets)};
  if (!is_csv(file)) return part_of(read_arrays(file), "", file);
  CsvNumbers numbers = read_csv_numbers(file, columns_, separator_);
  if (numbers.y.size(1) == 1) numbers.y = numbers.y.squeeze(1);
  return {.path = file.string(),
          .x_name = "x",
          .y_name = "y",
          .x = std::move(numbers.x),
          .y = std::move(numbers.y),
          .of_text = true};
}

/// Splits a part; both halves keep the order of the file.
std::array<SamplePart, 2> SampleSource::halves(SamplePart whole) const {
  if (!split_.wanted())
    throw Error(ErrorKind::Experiment,
                concat(file_.filename().string(),
                       " has one part; expected dataset.split, as in split: 0.2, or "
                       "dataset.test_file"),
                at_file_);
  auto [train, test] =
      split_.draw(whole.x.dim() > 0 ? whole.x.size(0) : 1, file_.filename().string());
  SamplePart trained = whole, tested = std::move(whole);
  trained.rows = std::move(train);
  tested.rows = std::move(test);
  return {std::move(trained), std::move(tested)};
}

}  // namespace pipewright
