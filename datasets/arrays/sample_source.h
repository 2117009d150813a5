// SPDX-License-Identifier: Apache-2.0
/// Where the samples of the data set `tensors` come from: files of arrays in four formats, with a
/// training and a test part, or with one part that is split.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/options.h"
#include "datasets/arrays/csv_numbers.h"
#include "datasets/drawn_split.h"

namespace pipewright {

/// Inputs and targets as a file has them: row i of each belongs to one sample. `rows` are those of
/// the part, in order; if there are none, all are. The names are for messages.
struct SamplePart {
  std::string path, x_name, y_name;
  at::Tensor x, y;
  std::vector<std::int64_t> rows;
  bool of_text = false;  ///< every number was written as a real one, whole or not
};

class SampleSource {
 public:
  /// Reads the options `file`, `target_file`, `test_file`, `test_target_file`, `split`, `seed`,
  /// `columns`, `target` and `separator`.
  explicit SampleSource(Options& options);

  /// The training and the test part. Throws Error{Data}, and Error{Experiment} for a choice of
  /// samples or columns that the files do not have.
  std::array<SamplePart, 2> read() const;

 private:
  std::array<SamplePart, 2> halves(SamplePart whole) const;
  std::array<SamplePart, 2> read_named() const;
  SamplePart read_whole(const std::filesystem::path& file,
                        const std::filesystem::path& targets) const;
  void check(Options& options) const;

  std::filesystem::path file_, targets_, test_file_, test_targets_;
  DrawnSplit split_;
  CsvColumns columns_;
  char separator_;
  std::string at_file_;  ///< place of the option `file`
};

}  // namespace pipewright
