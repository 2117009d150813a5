// SPDX-License-Identifier: Apache-2.0
/// Long rows: one line for each number of each run, with the settings in which the runs differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/exports/metric_rows.h"

namespace pipewright {

enum class LongFormat : std::uint8_t { Csv, JsonLines };

/// The dotted keys in which the runs differ, train.seed among them: those that their sweeps vary,
/// then differing_options(). Neither label and name, nor the section output.
std::vector<std::string> differing_keys(const std::vector<ExportedRun>& runs);

/// Writes run, label, state, these keys, epoch, step, metric and value: as CSV with a header, or
/// each row as a JSON object. `step` is the mini-batch within the epoch, empty (in JSON absent) in
/// rows about an epoch. Values read back as the same double; JSON has null where one is infinite.
/// The file gets its name once it is complete. Throws Error{Data}. Returns the number of rows.
std::size_t write_long_rows(const std::filesystem::path& file, const std::vector<ExportedRun>& runs,
                            LongFormat format);

}  // namespace pipewright
