// SPDX-License-Identifier: Apache-2.0
/// Tables of numbers in text files: a line for each row, fields separated by one character, perhaps
/// in double quotes. A first line in which no field is a number names the columns.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

/// A column by its number, from 1, or, where that is 0, by its name in the first line. `option` and
/// `where` are for messages: the option that says so, and its place.
struct CsvColumn {
  std::int64_t number = 0;
  std::string name;
  std::string option, where;
};

/// The columns of inputs, all but the targets' if there are none; and those of targets, the last if
/// there are none.
struct CsvColumns {
  std::vector<CsvColumn> inputs, targets;
};

/// x [rows, inputs] and y [rows, targets], float64.
struct CsvNumbers {
  at::Tensor x, y;
};

/// Reads the chosen columns; others may hold anything. Throws Error{Experiment} for columns that
/// the file does not have, and Error{Data} with the file, line and column of text for a field that
/// is no finite number, for lines of different lengths, and for a file of more than 1 GiB.
CsvNumbers read_csv_numbers(const std::filesystem::path& path, const CsvColumns& columns,
                            char separator);

}  // namespace pipewright
