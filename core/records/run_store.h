// SPDX-License-Identifier: Apache-2.0
/// results.sqlite: the runs of a sweep for queries. The run folders are authoritative; the file is
/// generated from them and can be deleted at any time.
///
///   results   a view with one row for each point of today's file: point (its number, from 1),
///             folder, label, state, a column for each key that varies ("train.seed"), epochs (how
///             many were trained), and of runs that are done, each metric at the last epoch that
///             has it
///   curves    a view with one row for each epoch of those that are done: point, folder, label,
///             the keys that vary, epoch (from 0, as in epochs.csv) and the metrics
///
///   runs(folder, label, state, digest, error, varied, config, point)   varied, config: JSON; point
///             is NULL where the folder is left from another version of the file
///   epochs(folder, epoch, metric, value)                    one row per number of epochs.csv
///   points(point, …)                     a column for each key that varies and for each metric
///
///   results = pandas.read_sql("SELECT * FROM results", sqlite3.connect("results.sqlite"))
///   results.groupby("scheme.name")["test_accuracy"].agg(["mean", "std", "count"])
#pragma once

#include <filesystem>
#include <vector>

#include "core/records/run_record.h"

namespace pipewright {

/// Generates `<sweep_folder>/results.sqlite`: writes a temporary file and renames it once it is
/// complete. `today`: the records of the points of the sweep's file, in order; other run folders
/// are read from the sweep's folder. Returns the number of runs. Throws Error{Data}.
std::size_t rebuild_run_store(const std::filesystem::path& sweep_folder,
                              const std::vector<RunRecord>& today = {});

}  // namespace pipewright
