// SPDX-License-Identifier: Apache-2.0
/// Where the samples of the data set `tensors` come from: files of arrays in five formats, with a
/// training and a test part, or with one part that is split.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/config/options.h"
#include "datasets/arrays/csv_numbers.h"
#include "datasets/drawn_split.h"

namespace pipewright {

using NamedArray = std::pair<std::string, at::Tensor>;

/// Inputs and targets as a file has them: row i of each belongs to one sample. `rows` are those of
/// the part, in order; if there are none, all are. The names are for messages.
struct SamplePart {
  std::string path, x_name, y_name;
  at::Tensor x, y;
  std::vector<NamedArray> further;  ///< inputs beside x
  std::vector<std::int64_t> rows;
  bool of_text = false;            ///< every number was written as a real one, whole or not
  std::vector<std::string> texts;  ///< targets that are names of classes, in place of y
  std::string remark;
  CsvColumns same_elsewhere;  ///< CsvNumbers::same_elsewhere
};

/// How much of the samples is read: Form leaves the numbers of inputs out that are no tokens.
/// Their arrays are on the meta device, except of .npz and .csv files, which have to be unpacked.
enum class SampleDetail : std::uint8_t { All, Form };

class SampleSource {
 public:
  /// Reads the options `file`, `target_file`, `test_file`, `test_target_file`, `split`, `seed`,
  /// `columns`, `target`, `separator`, `decimal` and `header`.
  explicit SampleSource(Options& options);

  /// The training and the test part, with inputs of these names. With `classes`, targets of text
  /// are numbered by the sorted names of the training part, or of the file that is split. Throws
  /// Error{Data}, and Error{Experiment} for a choice of samples, inputs or columns that the files
  /// do not have.
  std::array<SamplePart, 2> read(const std::vector<std::string>& inputs, bool classes,
                                 SampleDetail detail = SampleDetail::All) const;

 private:
  struct Wanted {
    std::vector<std::string> inputs;
    bool classes;
    SampleDetail detail;
  };
  std::array<SamplePart, 2> halves(SamplePart whole) const;
  std::array<SamplePart, 2> read_named(const Wanted& wanted) const;
  SamplePart read_whole(const std::filesystem::path& file, const std::filesystem::path& targets,
                        const Wanted& wanted, const CsvColumns& columns) const;
  void check(Options& options) const;

  std::filesystem::path file_, targets_, test_file_, test_targets_;
  DrawnSplit split_;
  CsvColumns columns_;
  CsvForm form_;
  std::string at_file_;  ///< place of the option `file`
};

}  // namespace pipewright
