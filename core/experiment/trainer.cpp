#include "core/experiment/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/experiment/checkpoint.h"
#include "core/schedule/render.h"
#include "core/stage/safetensors.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// Mean of the mini-batches' losses, weighted by their samples.
double mean_loss(const std::vector<std::vector<double>>& losses, int begin, int end,
                 const EpochOrder& order) {
  double sum = 0, samples = 0;
  for (int m = begin; m < end; ++m) {
    const auto size = static_cast<double>(order.size_of(m - begin));
    sum += losses[static_cast<std::size_t>(m)][0] * size;
    samples += size;
  }
  return sum / samples;
}

}  // namespace

Trainer::Trainer(const Plan& plan, Team& team, const RunFolder* folder, Progress* progress,
                 const std::atomic<bool>* stop)
    : plan_(plan),
      team_(team),
      folder_(folder),
      progress_(progress),
      stop_(stop),
      stages_(plan.stages(team)) {}

bool Trainer::predicts() const {
  return std::ranges::any_of(stages_, [](const auto& stage) { return stage && stage->predicts(); });
}

int Trainer::resume() {
  const Experiment& e = *plan_.experiment;
  if (folder_ == nullptr || !std::filesystem::exists(folder_->checkpoint())) return 0;
  const int done = load_checkpoint(folder_->checkpoint(), *e.optimizer, predicts(), stages_,
                                   e.pipeline.stages, e.digest);
  epochs_ = folder_->read_epochs();
  std::erase_if(epochs_, [done](const EpochRow& row) { return row.epoch >= done; });
  if (e.output.steps) steps_ = folder_->read_steps();
  std::erase_if(steps_, [done](const StepRow& row) { return row.epoch >= done; });
  return done;
}

void Trainer::train() {
  const TrainOptions& options = plan_.experiment->train;
  const int done = epochs_.empty() ? 0 : epochs_.back().epoch + 1;
  if (options.drain_each_epoch)
    for (int epoch = done; epoch < options.epochs; ++epoch) train_epochs(epoch, 1);
  else if (done < options.epochs)
    train_epochs(0, options.epochs);
  if (folder_ == nullptr) return;
  if (options.epochs == 0) save(0);
  if (plan_.experiment->output.weights) {
    const TensorFile file = final_weights();
    if (team_.first()) write_safetensors(folder_->final_weights(), file);
  }
}

/// Of replica 0, in layer order; whole in process 0 only.
TensorFile Trainer::final_weights() {
  TensorFile file;
  for (int stage = 0; stage < plan_.experiment->pipeline.stages; ++stage) {
    TensorFile part;
    if (const auto& held = stages_[static_cast<std::size_t>(stage)])
      part.tensors = held->named_state();
    if (team_.size() > 1) {
      const auto all = team_.gather(part.tensors.empty() ? "" : safetensors_bytes(part));
      if (!team_.first()) continue;
      const int worker = plan_.training.schedule.shape.worker_of(stage, 0);
      const std::string& bytes = all[static_cast<std::size_t>(worker)];
      part = bytes.empty() ? TensorFile{} : parse_safetensors(bytes, "the final weights");
    }
    for (auto& named : part.tensors) file.tensors.push_back(std::move(named));
  }
  return file;
}

double Trainer::lr_at(std::int64_t step) const {
  const Experiment& e = *plan_.experiment;
  const std::int64_t epochs = e.train.epochs;
  if (e.lr_schedule.per_step())
    return e.lr_schedule.at(e.optimizer->lr(), step, epochs * plan_.minibatches);
  return e.lr_schedule.at(e.optimizer->lr(), step / plan_.minibatches, epochs);
}

void Trainer::train_epochs(int first, int count) {
  const Experiment& e = *plan_.experiment;
  Loader loader = plan_.training_loader(first, count);
  const std::int64_t first_step = std::int64_t{first} * plan_.minibatches;
  const auto begin = std::chrono::steady_clock::now();
  const RunResult result =
      execute(plan_.training, stages_,
              {.batches = loader,
               .lr = [&](int minibatch) { return lr_at(first_step + minibatch); },
               .seed = e.train.seed,
               .first_epoch = first,
               .minibatches_per_epoch = plan_.minibatches,
               .sum_gradients = e.train.sum_gradients,
               .execution = e.pipeline.execution,
               .threads = e.pipeline.threads,
               .on_minibatch =
                   [&](int) {
                     if (progress_ != nullptr) progress_->step();
                   },
               .stop = stop_,
               .trace = e.output.trace ? &trace_ : nullptr,
               .team = &team_,
               .on_failure =
                   [&](int worker, const std::string& actions) {
                     if (folder_ != nullptr) folder_->write_last_actions(worker, actions);
                   }});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  check_weights(first + count - 1);
  const EpochOrder order{plan_.train, e.loader.batch_size, e.loader.drop_last};
  for (int i = 0; i < count; ++i) {
    const int from = i * plan_.minibatches;
    EpochRow row{.epoch = first + i,
                 .train_loss = mean_loss(result.losses, from, from + plan_.minibatches, order),
                 .test_loss = kNotMeasured,
                 .test_accuracy = kNotMeasured,
                 .lr = lr_at(first_step + from),
                 .seconds = seconds / count};
    std::int64_t samples = 0;
    for (int m = 0; m < plan_.minibatches; ++m) {
      steps_.push_back({row.epoch, m, result.losses[static_cast<std::size_t>(from + m)]});
      samples += order.size_of(m);
    }
    row.samples_per_second = static_cast<double>(samples) * count / seconds;
    const bool last = row.epoch + 1 == e.train.epochs;
    if (last || (i + 1 == count && (row.epoch + 1) % e.train.evaluate_every == 0)) evaluate(row);
    epochs_.push_back(row);
    if (progress_ != nullptr) progress_->epoch(row, e.train.epochs);
  }
  save(first + count);
}

void Trainer::evaluate(EpochRow& row) {
  if (plan_.test.empty()) return;
  Loader loader = plan_.evaluation_loader();
  const RunResult result = execute(plan_.evaluation, stages_,
                                   {.batches = loader,
                                    .lr = [](int) { return 0.0; },
                                    .first_epoch = row.epoch,
                                    .minibatches_per_epoch = loader.minibatches(),
                                    .execution = plan_.experiment->pipeline.execution,
                                    .threads = plan_.experiment->pipeline.threads,
                                    .stop = stop_,
                                    .team = &team_});
  const EpochOrder order{plan_.test, plan_.experiment->loader.batch_size, false};
  row.test_loss = mean_loss(result.losses, 0, loader.minibatches(), order);
  row.test_accuracy = static_cast<double>(result.correct) / static_cast<double>(result.samples);
}

void Trainer::check_weights(int epoch) const {
  for (const auto& stage : stages_) {
    if (!stage) continue;
    for (const auto& [name, tensor] : stage->named_state())
      if (!tensor.isfinite().all().item<bool>())
        throw Error(ErrorKind::NotFinite,
                    concat("'", name, "' is not finite after epoch ", epoch, " (",
                           stage->optimizer_state().steps, " updates); try a smaller optimizer.lr"),
                    concat("stage ", stage->index()));
  }
}

void Trainer::save(int epochs_done) {
  if (folder_ == nullptr) return;
  const Experiment& e = *plan_.experiment;
  const int every = e.train.checkpoint_every;
  const bool due = every > 0 && (epochs_done % every == 0 || epochs_done == e.train.epochs);
  if (!due && epochs_done != e.train.epochs) return;
  if (team_.first()) {
    folder_->write_epochs(epochs_);
    if (e.output.steps) folder_->write_steps(steps_, plan_.auxiliary);
  }
  if (due && epochs_done < e.train.epochs)
    save_checkpoint(folder_->checkpoint(), *e.optimizer, predicts(), stages_, e.pipeline.stages,
                    epochs_done, e.digest);
}

}  // namespace pipewright
