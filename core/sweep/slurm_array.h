/// A sweep as a Slurm job array, in text: the batch script and the list of runs it reads. Nothing
/// is written or submitted here; slurm_jobs does that.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/sweep/sweep_plan.h"

namespace pipewright {

struct SlurmSettings {
  std::string name;               ///< of the job
  std::filesystem::path program;  ///< pipewright, as the nodes of the cluster find it
  int points_per_task = 1;        ///< runs that a task of the array takes, in turn
  int tasks_at_once = 0;          ///< 0: as many as the cluster gives
  /// The user's own options of sbatch, as in a batch script: a line each, after ours, so that they
  /// win.
  std::vector<std::string> options;
};

/// A line of points.tsv: which task of the array does which run.
struct ArrayPoint {
  int task = 1;
  std::string folder;  ///< of the run, in the sweep's folder
  std::string title;
};

/// The runs in their order, `points_per_task` (at least 1) to a task, tasks from 1 on.
std::vector<ArrayPoint> array_points(const std::vector<PlannedRun>& runs, int points_per_task);

/// The batch script of an array whose files lie in `folder`, which is <sweep>/slurm/<number> and
/// absolute. A task asks for the cores of the largest run. Throws Error{Experiment} for a folder
/// that sbatch cannot be told.
std::string array_script(const std::vector<PlannedRun>& runs, const std::filesystem::path& folder,
                         const SlurmSettings& settings);

/// points.tsv: no header, fields as in ArrayPoint. Reading throws Error{Data} with file and line.
std::string points_text(const std::vector<ArrayPoint>& points);
std::vector<ArrayPoint> read_points(const std::filesystem::path& file);

}  // namespace pipewright
