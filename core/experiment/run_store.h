/// results.sqlite: the runs of a sweep for queries. The run folders are the truth; the file is
/// made from them and can be deleted at any time.
///
///   runs(folder, label, state, digest, error, varied, config)   varied, config: JSON
///   epochs(folder, epoch, metric, value)                         one row per number of epochs.csv
///
///   sqlite3 results.sqlite "SELECT label, avg(value) FROM runs JOIN epochs USING (folder)
///     WHERE metric = 'test_accuracy' AND epoch = 9 AND state = 'done' GROUP BY label"
#pragma once

#include <filesystem>

namespace pipewright {

/// Writes `<sweep_folder>/results.sqlite` anew from the run folders in it: a temporary file,
/// renamed when it is whole. Returns the number of runs. Throws Error{Data}.
std::size_t rebuild_run_store(const std::filesystem::path& sweep_folder);

}  // namespace pipewright
