// SPDX-License-Identifier: Apache-2.0
/// Trains a plan: runs its epochs and evaluations, and writes checkpoints and tables of the run
/// folder.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exports/training_events.h"
#include "core/records/row_log.h"
#include "core/records/run_folder.h"
#include "core/runtime/action_log.h"
#include "core/runtime/devices/graph_recorder.h"
#include "core/runtime/team.h"
#include "core/tensor_files/safetensors.h"
#include "core/training/evaluations_within.h"
#include "core/training/held_replica.h"
#include "core/training/measurements.h"
#include "core/training/plan.h"
#include "core/training/programs.h"
#include "core/training/progress.h"
#include "core/training/training_state.h"

namespace pipewright {

class Trainer {
 public:
  /// With a null `folder` nothing is written. Once `stop` is true, train() throws
  /// Error{Interrupted}; the results of finished epochs remain.
  Trainer(const Plan& plan, Team& team, const RunFolder* folder, Progress* progress,
          const std::atomic<bool>* stop);

  /// Loads the folder's checkpoint, if there is one. Returns remarks for the user.
  std::vector<std::string> resume();
  void train();
  void show(Progress* progress) { progress_ = progress; }
  void record_in(ActionLog& log) { log_ = &log; }
  /// From now on appends the losses of each mini-batch to `all`: [0] is the last stage's loss, then
  /// come auxiliary losses.
  void collect_losses(std::vector<std::vector<double>>& all) { collected_ = &all; }

  /// Mini-batches trained so far.
  std::int64_t done() const { return state_.minibatches; }
  /// With output.trace: when each action of the last segment ran. traced() is its schedule.
  const std::vector<std::vector<Span>>& trace() const { return trace_; }
  const ProvedSchedule& traced() const { return *last_; }
  const std::vector<EpochRow>& epochs() const { return state_.epochs; }
  const std::vector<EvaluationRow>& evaluations() const { return state_.evaluations; }
  /// Names of EpochRow::metrics.
  std::vector<std::string> own_metrics() const;
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }

 private:
  void train_to(std::int64_t end);
  RunRequest request(Batches& batches) const;
  RunResult run(const Program& program, std::int64_t first);
  void begin_logs();
  void keep_losses(const std::vector<std::vector<double>>& losses, std::int64_t first);
  void add_evaluation(std::int64_t minibatches, const Program* within);
  void finish_epoch();
  void check_weights() const;
  void save();
  void tell_skipped();
  void tell_graphs(const GraphsUsed& used, const Program& program);
  void write_tables(Syncs syncs) const;
  void remove_logs();
  bool keeps_steps() const;
  bool tells_losses() const;
  std::function<void(int, double)> loss_recorder(std::int64_t first);
  void write_traffic(Syncs syncs) const;

  const Plan& plan_;
  Team& team_;
  const RunFolder* folder_;
  Progress* progress_;
  const std::atomic<bool>* stop_;
  ActionLog* log_ = nullptr;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<EdgeEnds>> edges_;              ///< empty without compression
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;  ///< empty without compression
  std::vector<HeldReplica> replicas_;                         ///< views of these three
  Measurements measurements_;
  EvaluationsWithin within_;
  Programs programs_;
  const std::vector<std::string> columns_;  ///< of steps.csv, behind epoch and mini-batch
  TrainingState state_;
  std::optional<RowLog> steps_;           ///< in process 0, with output.steps
  std::optional<TrainingEvents> events_;  ///< in process 0, with output.tensorboard
  std::vector<std::vector<double>>* collected_ = nullptr;
  const Program* last_;
  std::vector<std::vector<Span>> trace_;
  std::unique_ptr<GraphRecorder> graphs_;  ///< with pipeline.cuda_graphs
  bool told_graphs_ = false;
  double seconds_ = 0;                           ///< trained in this session
  std::chrono::steady_clock::time_point begun_;  ///< of the segment, later by each evaluation in it
};

}  // namespace pipewright
