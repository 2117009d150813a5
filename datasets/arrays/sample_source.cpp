// SPDX-License-Identifier: Apache-2.0
#include "datasets/arrays/sample_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/printable.h"
#include "core/base/wording.h"
#include "core/tensor_files/pattern.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "datasets/arrays/npy.h"

namespace pipewright {
namespace {

using NamedArrays = std::vector<NamedArray>;
using Names = std::vector<std::string>;

/// ".csv" of "A.CSV".
std::string ending(const std::filesystem::path& path) {
  return lower_case(path.extension().string());
}
bool is_npy(const std::filesystem::path& path) {
  return ending(path) == ".npy";
}
bool is_csv(const std::filesystem::path& path) {
  return ending(path) == ".csv" || ending(path) == ".tsv";
}

/// Whether a sample's form depends on the numbers of an array, not only on its shape.
bool has_form(const std::string& name, at::ScalarType type) {
  const bool targets = name == "y" || name.ends_with(".y") || name.starts_with("y_");
  return targets || type == at::kLong;
}

NamedArrays read_arrays(const std::filesystem::path& path, SampleDetail detail) {
  if (ending(path) == ".npz") return read_npz(path);
  const bool all = detail == SampleDetail::All;
  try {
    return (all ? read_safetensors(path) : read_safetensors(path, has_form)).tensors;
  } catch (const Error& error) {
    std::error_code ignored;
    if (ending(path) == ".safetensors" || !std::filesystem::exists(path, ignored)) throw;
    throw data_error(
        path, "its name ends in '", path.extension().string(),
        "', and it is no safetensors file; expected .safetensors, .npz, .npy, .csv or .tsv");
  }
}

/// The sorted names of a part's classes.
std::vector<std::string> names_of_classes(const SamplePart& part) {
  const std::set<std::string> names(part.texts.begin(), part.texts.end());
  return {names.begin(), names.end()};
}

/// Makes y of the texts of a part: the rank of each among the names.
void number_classes(SamplePart& part, const std::vector<std::string>& names) {
  part.y = at::empty({std::ssize(part.texts)}, at::kLong);
  auto* y = part.y.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < part.texts.size(); ++i) {
    const auto at = std::ranges::lower_bound(names, part.texts[i]);
    if (at == names.end() || *at != part.texts[i])
      throw data_error(part.path, "row ", i,
                       " (counted from 0, behind a line of names) has the target '",
                       printable(part.texts[i], 30), "', a class that no training sample has");
    *y++ = at - names.begin();
  }
  part.of_text = false;
}

at::Tensor read_inputs(const std::filesystem::path& path, SampleDetail detail) {
  return read_npy(path, [detail](at::ScalarType type) {
    return detail == SampleDetail::All || has_form("x", type);
  });
}

/// The array with one of two names, or null.
const NamedArray* find(const NamedArrays& arrays, const std::string& name,
                       const std::string& other) {
  const auto found = std::ranges::find_if(
      arrays, [&](const auto& array) { return array.first == name || array.first == other; });
  return found == arrays.end() ? nullptr : &*found;
}

/// "train.x, train.y, test.x and test.y"
std::string names_text(const std::string& part, Names names) {
  names.emplace_back("y");
  Names all;
  for (const std::string half : {"train.", "test."})
    for (const std::string& name : names) all.push_back(part.empty() ? name : half + name);
  if (part.empty()) all.resize(names.size());
  const std::string last = all.back();
  all.pop_back();
  return concat(join(all, ", "), " and ", last);
}

/// Finds an array as find() does, and throws if there is none. Python's keywords cannot be called
/// train.x, so arrays of numpy.savez may be called x_train.
const NamedArray& named_array(const NamedArrays& arrays, const std::string& part,
                              const std::string& what, const Names& inputs,
                              const std::filesystem::path& path) {
  const std::string name = part.empty() ? what : concat(part, ".", what);
  if (const auto* found = find(arrays, name, part.empty() ? what : concat(what, "_", part)))
    return *found;
  std::vector<std::string> known;
  for (const auto& [key, unused] : arrays) known.push_back(key);
  throw data_error(path, "there is no tensor '", name, "' in it; ", names_text(part, inputs),
                   " are needed, ",
                   part.empty() ? "" : concat("or ", names_text("", inputs), " to be split, "),
                   "and there are ", join(known, ", "));
}

SamplePart part_of(const NamedArrays& arrays, const std::string& part, const Names& inputs,
                   const std::filesystem::path& path) {
  const auto named = [&](const std::string& name) -> const NamedArray& {
    return named_array(arrays, part, name, inputs, path);
  };
  const NamedArray &x = named(inputs.at(0)), &y = named("y");
  SamplePart made{
      .path = path.string(), .x_name = x.first, .y_name = y.first, .x = x.second, .y = y.second};
  for (std::size_t i = 1; i < inputs.size(); ++i) made.further.push_back(named(inputs[i]));
  return made;
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

CsvForm read_form(Options& options, const std::filesystem::path& file) {
  const std::string separator =
      options.choice("separator", {"auto", "comma", "semicolon", "tab"}, "auto",
                     "Of .csv files: what stands between two fields of a line; auto: a comma, in "
                     ".tsv files a tab.");
  const bool tab = separator == "tab" || (separator == "auto" && ending(file) == ".tsv");
  const std::string decimal =
      options.choice("decimal", {"point", "comma"}, "point",
                     "Of .csv files: what stands before the decimals of a number.");
  const std::string header = options.choice("header", {"auto", "names", "none"}, "auto",
                                            "Of .csv files: whether the first line has names of "
                                            "columns; auto: where no field of it is a number.");
  return {.separator = tab                        ? '\t'
                       : separator == "semicolon" ? ';'
                                                  : ',',
          .decimal_comma = decimal == "comma",
          .header = header == "names"  ? CsvHeader::Names
                    : header == "none" ? CsvHeader::None
                                       : CsvHeader::Auto};
}

}  // namespace

SampleSource::SampleSource(Options& options)
    : file_(options.required_path(
          "file",
          "A file of samples. .safetensors and .npz have train.x, train.y, test.x and test.y "
          "(x_train and so on in .npz), or x and y, to be split; .npy has x; .csv and .tsv have a "
          "row for each sample. x: [samples, ...] floating or small integers, or [samples, tokens] "
          "int64; y: [samples] integers from 0, or one for each token, -100 for none; real numbers "
          "[samples] or [samples, targets] with the losses mse and l1; 0 or 1 for each label, "
          "[samples], [samples, labels] or as the model's output, with binary_cross_entropy. A "
          "model of several inputs takes them by its own names in place of x, from .safetensors or "
          ".npz.")),
      targets_(options.path("target_file", "", "Where file is a .npy file: that of y.")),
      test_file_(options.path(
          "test_file", "",
          "A file of the test samples, where file has the training samples only: x and y. Where "
          "the first line of a .csv file names its columns, those of the test file are found by "
          "these names, in any order.")),
      test_targets_(
          options.path("test_target_file", "", "Where test_file is a .npy file: that of its y.")),
      split_(options, /*fallback=*/0),
      columns_{read_columns(options, "columns",
                            "Of .csv files: the columns of x, a list of names in the first line or "
                            "of numbers from 1; []: all but the target and, where the first line "
                            "has names, those without one, such as pandas' index."),
               read_columns(options, "target",
                            "Of .csv files: the column of y, or a list of several for the losses "
                            "mse, l1 and binary_cross_entropy; []: the last one. Classes may be "
                            "texts, whose sorted names are numbered.")},
      form_(read_form(options, file_)),
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
        std::pair("target", !columns_.targets.empty()),
        std::pair("separator", form_.separator != ','), std::pair("decimal", form_.decimal_comma),
        std::pair("header", form_.header != CsvHeader::Auto)})
    if (set && !is_csv(file_))
      options.problem(name, "is for .csv and .tsv files; expected such a dataset.file");
}

std::array<SamplePart, 2> SampleSource::read(const Names& inputs, bool classes,
                                             SampleDetail detail) const {
  const Wanted wanted{inputs, classes, detail};
  if (!test_file_.empty()) {
    SamplePart train = read_whole(file_, targets_, wanted, columns_);
    const CsvColumns same = std::exchange(train.same_elsewhere, {});
    SamplePart test =
        read_whole(test_file_, test_targets_, wanted, same.as_in.empty() ? columns_ : same);
    std::array<SamplePart, 2> parts{std::move(train), std::move(test)};
    const std::vector<std::string> names = names_of_classes(parts[0]);
    if (names.empty() != parts[1].texts.empty())
      throw data_error(parts[1].path, "has targets that are ", names.empty() ? "names" : "numbers",
                       ", those of ", parts[0].path, " are ", names.empty() ? "numbers" : "names");
    for (SamplePart& part : parts)
      if (!names.empty()) number_classes(part, names);
    return parts;
  }
  if (is_npy(file_) || is_csv(file_)) return halves(read_whole(file_, targets_, wanted, columns_));
  return read_named(wanted);
}

/// Reads a file that may have both parts.
std::array<SamplePart, 2> SampleSource::read_named(const Wanted& wanted) const {
  const Names& inputs = wanted.inputs;
  const NamedArrays arrays = read_arrays(file_, wanted.detail);
  const bool parts = find(arrays, concat("train.", inputs[0]), inputs[0] + "_train") != nullptr;
  if (find(arrays, inputs[0], inputs[0]) != nullptr || (split_.wanted() && !parts))
    return halves(part_of(arrays, "", inputs, file_));
  if (split_.wanted())
    throw experiment_error(
        split_.where(), "dataset.split is for files of one part, with the arrays x and y, which ",
        file_.filename().string(), " is not");
  return {part_of(arrays, "train", inputs, file_), part_of(arrays, "test", inputs, file_)};
}

SamplePart SampleSource::read_whole(const std::filesystem::path& file,
                                    const std::filesystem::path& targets, const Wanted& wanted,
                                    const CsvColumns& columns) const {
  const Names& inputs = wanted.inputs;
  if (inputs.size() > 1 && (is_npy(file) || is_csv(file)))
    throw experiment_error(at_file_, file.filename().string(),
                           " has one input, x, the model takes ", join(inputs, ", "),
                           "; expected a .safetensors or .npz file of these names");
  if (is_npy(file))
    return {.path = file.string(),
            .x_name = "x",
            .y_name = "y",
            .x = read_inputs(file, wanted.detail),
            .y = read_npy(targets)};
  if (!is_csv(file)) return part_of(read_arrays(file, wanted.detail), "", inputs, file);
  CsvForm form = form_;
  form.classes = wanted.classes;
  CsvNumbers numbers = read_csv_numbers(file, columns, form);
  if (numbers.y.defined() && numbers.y.size(1) == 1) numbers.y = numbers.y.squeeze(1);
  std::string remark;
  if (numbers.unnamed > 0)
    remark = concat(file.filename().string(), ": ", counted(numbers.unnamed, "column"),
                    " without a name, such as pandas' index, ", numbers.unnamed == 1 ? "is" : "are",
                    " no input");
  if (!numbers.first_line.empty())
    remark = concat(file.filename().string(), ": the first line, ", numbers.first_line,
                    ", is a sample, for all of it are numbers; with dataset.header: names it has "
                    "names, and dataset.header: none says that it is one");
  return {.path = file.string(),
          .x_name = "x",
          .y_name = "y",
          .x = std::move(numbers.x),
          .y = std::move(numbers.y),
          .of_text = true,
          .texts = std::move(numbers.texts),
          .remark = std::move(remark),
          .same_elsewhere = std::move(numbers.same_elsewhere)};
}

/// Splits a part; both halves keep the order of the file.
std::array<SamplePart, 2> SampleSource::halves(SamplePart whole) const {
  if (!split_.wanted())
    throw experiment_error(
        at_file_, file_.filename().string(),
        " has one part; expected dataset.split, as in split: 0.2, or dataset.test_file");
  if (!whole.texts.empty()) number_classes(whole, names_of_classes(whole));
  auto [train, test] =
      split_.draw(whole.x.dim() > 0 ? whole.x.size(0) : 1, file_.filename().string());
  SamplePart trained = whole, tested = std::move(whole);
  trained.rows = std::move(train);
  tested.rows = std::move(test);
  return {std::move(trained), std::move(tested)};
}

}  // namespace pipewright
