// SPDX-License-Identifier: Apache-2.0
/// Tables of numbers in text files: a line for each row, fields separated by one character, perhaps
/// in double quotes. A first line in which no field is a number names the columns; so does one with
/// an empty field and then 0, 1, 2, …, which pandas writes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipewright {

/// A column by its number, from 1, or, where that is 0, by its name in the first line. `option` and
/// `where` are for messages: the option that says so, and its place. Of a column that is chosen as
/// in another file they are empty, and the name is the one that its place has there.
struct CsvColumn {
  std::int64_t number = 0;
  std::string name;
  std::string option, where;
};

/// The columns of inputs, all but the targets' and those without a name in a line of names if there
/// are none; and those of targets, the last if there are none.
struct CsvColumns {
  std::vector<CsvColumn> inputs, targets;
  std::string as_in;  ///< the file whose names they are, if they are chosen as in another one
};

/// What the first line of a table is; Auto: as its fields look.
enum class CsvHeader : std::uint8_t { Auto, Names, None };

struct CsvForm {
  char separator = ',';
  bool decimal_comma = false;  ///< 1,5 is a number, and 1.5 is none
  CsvHeader header = CsvHeader::Auto;
  bool classes = false;  ///< the target may be a text in all rows
};

/// x [rows, inputs] and y [rows, targets], float64. A target of texts has them in `texts`, one for
/// each row, in place of y.
struct CsvNumbers {
  at::Tensor x, y;
  std::vector<std::string> texts;
  std::size_t unnamed = 0;  ///< columns left out for want of a name
  std::string first_line;   ///< what it has, if it was read as a row and may well be names
  /// Chooses the same columns in another file by their names. Its as_in is empty, and so is all of
  /// it, where the first line has none.
  CsvColumns same_elsewhere;
};

/// Reads the chosen columns; others may hold anything. Throws Error{Experiment} for columns that
/// the file does not have, and Error{Data} with the file, line and column of text for a field that
/// is no finite number, for a first line that may be either, for lines of different lengths, for a
/// file that lacks columns of another one, and for a file of more than 1 GiB.
CsvNumbers read_csv_numbers(const std::filesystem::path& path, const CsvColumns& columns,
                            const CsvForm& form);

}  // namespace pipewright
