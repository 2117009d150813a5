// SPDX-License-Identifier: Apache-2.0
/// Rows of results (core/records/result_rows.h) and the run folders of a sweep, used together.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/records/result_rows.h"

namespace pipewright {

/// The digests of the document's points, as rows have them, in the order of sweep_records().
std::vector<std::string> point_digests(const Value& document);

struct KeptResults {
  MergedRows merged;        ///< all rows of the file, and those of the run folders
  std::size_t used = 0;     ///< runs whose results are those of a row
  std::size_t strange = 0;  ///< rows of no run of the document; they are in `merged` all the same
};

/// Merges the rows of `file` with the `records` of the document's runs, and gives every record the
/// results of its row: one of a finished run, or of a failed one where there is no run folder. The
/// metrics that table, plot and claims of the document name are in the rows, those of probes too.
/// Throws Error{Data} as merged_rows() does.
KeptResults keep_results(std::vector<ResultRow> rows, const std::filesystem::path& file,
                         const Value& document, std::vector<RunRecord>& records);

/// Says for each digest whether a row of a finished run has it.
std::vector<bool> have_rows(const std::vector<ResultRow>& rows,
                            const std::vector<std::string>& digests);

}  // namespace pipewright
