// SPDX-License-Identifier: Apache-2.0
/// Measurements beside a training, which change no bit of it: probes at the workers, probes of the
/// whole model, and how far measured curvature lies past the edges of stability.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exports/training_events.h"
#include "core/records/row_log.h"
#include "core/runtime/observer.h"
#include "core/runtime/team.h"
#include "core/stability/edge_watch.h"
#include "core/stage/stage.h"
#include "core/training/plan.h"
#include "core/training/progress.h"

namespace pipewright {

/// Each process of a training has one, which its main thread uses. Where the experiment has no
/// probes, nothing happens. All arguments of the constructor must outlive it.
class Measurements {
 public:
  Measurements(const Plan& plan, Team& team, const std::vector<std::unique_ptr<Stage>>& stages);

  /// From now on the rows are appended to a log in the checkpoints' folder, which begins after so
  /// many mini-batches, unless there is one already. Only process 0 has it. Throws Error{Data}.
  void keep_rows(const std::filesystem::path& checkpoints, std::int64_t done);
  /// Continues the log that belongs to a checkpoint, if that has one. Throws Error{Data}.
  void go_on(const std::filesystem::path& checkpoints, const RowLogPart& part);
  /// From now on also shows what the probes find as curves. `events` must outlive this object.
  void show_in(TrainingEvents& events) { events_ = &events; }
  /// The log of rows, if this process keeps one.
  std::optional<RowLog>& rows() { return rows_; }
  const std::optional<RowLog>& rows() const { return rows_; }

  /// Collective, before the training goes on after `done` mini-batches: says what the probes will
  /// do, finds the edges of stability, and throws Error{Experiment} if a probe cannot measure the
  /// whole model.
  void try_out(std::int64_t done, Progress* progress);
  /// The observer of the next segment, which begins after `first` mini-batches; null without
  /// probes.
  Observer* begin(std::int64_t first);
  /// Collective, where the segment of the mini-batches `first` to before `done` has drained the
  /// pipeline: measures the whole model with the weights that were copied meanwhile, appends the
  /// rows that all processes have found since the last call, and warns.
  void finish(std::int64_t first, std::int64_t done, Progress* progress);

  /// Describes the stage that exceeded its stability limit most at the last measurement; empty if
  /// none did.
  std::string farthest_past_edge() const;
  /// Collective: says what each probe has cost: the seconds of all workers, and their part of the
  /// `seconds` that all workers have trained in this session.
  void tell_costs(double seconds, Progress* progress);

 private:
  void begin_watch();
  void measure_whole_model(std::int64_t first, std::int64_t done);
  void watch_edges(Progress* progress);
  void keep_found();

  const Plan& plan_;
  Team& team_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  std::optional<Probes> probes_;  ///< of this process's stages, if the experiment has probes
  std::vector<ProbeRow> whole_;   ///< of the whole model, found by process 0
  std::vector<Probes::Cost> whole_costs_;
  std::optional<EdgeWatch> edges_;  ///< in process 0, if sharpness is measured
  TrainingEvents* events_ = nullptr;
  std::optional<RowLog> rows_;  ///< in process 0: the rows of probes.csv
};

}  // namespace pipewright
