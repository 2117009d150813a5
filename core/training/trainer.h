/// Trains a plan: epochs, evaluation, checkpoints, and the files of the run folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/records/run_folder.h"
#include "core/runtime/action_log.h"
#include "core/runtime/processes/team.h"
#include "core/stage/files/safetensors.h"
#include "core/training/plan.h"
#include "core/training/progress.h"
#include "core/training/step_log.h"
#include "core/training/training_state.h"

namespace pipewright {

class Trainer {
 public:
  /// `folder` may be null: then nothing is written. `stop` becoming true ends train() with
  /// Error{Interrupted}; what the last finished epochs left stays.
  Trainer(const Plan& plan, Team& team, const RunFolder* folder, Progress* progress,
          const std::atomic<bool>* stop);

  /// Takes up the folder's checkpoint, if there is one. Remarks for the person who waits.
  std::vector<std::string> resume();
  void train();
  void show(Progress* progress) { progress_ = progress; }
  void record_in(ActionLog& log) { log_ = &log; }
  /// Adds the losses of each mini-batch from here on to `all`: [0] its own, then auxiliary ones.
  void collect_losses(std::vector<std::vector<double>>& all) { collected_ = &all; }

  /// Mini-batches trained.
  std::int64_t done() const { return state_.minibatches; }
  /// When each action of the last schedule ran, with output.trace; and that schedule.
  const std::vector<std::vector<Span>>& trace() const { return trace_; }
  const Schedule& traced() const { return last_->schedule; }
  const std::vector<EpochRow>& epochs() const { return state_.epochs; }
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }

 private:
  void train_to(std::int64_t end);
  RunResult run(const Program& program, std::int64_t first);
  const Program& program_for(std::int64_t first, int minibatches);
  void begin_steps();
  void keep_losses(const std::vector<std::vector<double>>& losses, std::int64_t first);
  void finish_epoch();
  void evaluate(EpochRow& row);
  double bleu();
  void check_weights() const;
  void save();
  void write_tables() const;
  void remove_steps();
  TensorFile latest_weights();
  std::vector<std::string> own_metrics() const;
  double lr_at(std::int64_t step) const;
  bool keeps_steps() const;
  void write_traffic() const;

  const Plan& plan_;
  Team& team_;
  const RunFolder* folder_;
  Progress* progress_;
  const std::atomic<bool>* stop_;
  ActionLog* log_ = nullptr;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<EdgeEnds>> edges_;              ///< empty: nothing is compressed
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;  ///< the same
  TrainingState state_;
  std::optional<StepLog> steps_;  ///< process 0's, with output.steps
  std::vector<std::vector<double>>* collected_ = nullptr;
  std::deque<Program> programs_;  ///< of segments shorter than plan_.training, the latest few
  const Program* last_;
  std::vector<std::vector<Span>> trace_;
};

}  // namespace pipewright
