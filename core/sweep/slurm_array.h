// SPDX-License-Identifier: Apache-2.0
/// The text of a Slurm job array for a sweep: its batch script and the list of runs that it reads.
/// slurm_jobs.h writes and submits them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/sweep/sweep_plan.h"

namespace pipewright {

struct SlurmSettings {
  std::string name;               ///< name of the job
  std::filesystem::path program;  ///< path of pipewright on the nodes of the cluster
  int points_per_task = 1;        ///< runs that one task performs, one after another
  int tasks_at_once = 0;          ///< most tasks at the same time; 0: no limit
  /// The user's options of sbatch, one line each in the batch script, after ours, so that they
  /// override these.
  std::vector<std::string> options;
};

/// A line of points.tsv: a run and the task of the array that performs it.
struct ArrayPoint {
  int task = 1;
  std::string folder;  ///< run folder, within the sweep's folder
  std::string title;
};

/// Assigns the runs in their order to tasks 1, 2, …, `points_per_task` (at least 1) to each.
std::vector<ArrayPoint> array_points(const std::vector<PlannedRun>& runs, int points_per_task);

/// The batch script of an array whose files are in `folder`, an absolute path
/// <sweep>/slurm/<number>. Each task requests the cores and GPUs of the largest run, but no GPUs
/// where the user's options name some. Throws Error{Experiment} if the folder's name cannot be
/// written in an sbatch option.
std::string array_script(const std::vector<PlannedRun>& runs, const std::filesystem::path& folder,
                         const SlurmSettings& settings);

/// The content of points.tsv: one line per run without a header, with the fields of ArrayPoint.
/// read_points() throws Error{Data} with file and line.
std::string points_text(const std::vector<ArrayPoint>& points);
std::vector<ArrayPoint> read_points(const std::filesystem::path& file);

}  // namespace pipewright
