/// Trains a plan: epochs, evaluation, checkpoints, and the files of the run folder.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/experiment/plan.h"
#include "core/experiment/progress.h"
#include "core/experiment/run_folder.h"
#include "core/runtime/team.h"
#include "core/stage/safetensors.h"

namespace pipewright {

class Trainer {
 public:
  /// `folder` may be null: then nothing is written. `stop` becoming true ends train() with
  /// Error{Interrupted}; what the last finished epochs left stays.
  Trainer(const Plan& plan, Team& team, const RunFolder* folder, Progress* progress,
          const std::atomic<bool>* stop);

  /// Takes up the folder's checkpoint, if there is one. Returns the epochs behind it.
  int resume();
  void train();
  void show(Progress* progress) { progress_ = progress; }

  /// When each action of the last epoch ran, with output.trace.
  const std::vector<std::vector<Span>>& trace() const { return trace_; }
  const std::vector<EpochRow>& epochs() const { return epochs_; }
  const std::vector<StepRow>& steps() const { return steps_; }
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }

 private:
  void train_epochs(int first, int count);
  void evaluate(EpochRow& row);
  void check_weights(int epoch) const;
  void save(int epochs_done);
  TensorFile final_weights();
  bool predicts() const;
  double lr_at(std::int64_t step) const;

  const Plan& plan_;
  Team& team_;
  const RunFolder* folder_;
  Progress* progress_;
  const std::atomic<bool>* stop_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<EpochRow> epochs_;
  std::vector<StepRow> steps_;
  std::vector<std::vector<Span>> trace_;
};

}  // namespace pipewright
