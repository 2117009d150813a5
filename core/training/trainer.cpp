// SPDX-License-Identifier: Apache-2.0
#include "core/training/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/runtime/executor.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "core/training/checkpoint.h"
#include "core/training/evaluation.h"
#include "core/training/gathered.h"
#include "core/training/replica_check.h"
#include "core/training/step_log.h"

namespace pipewright {
namespace {

/// Worker of a stage, for traffic.csv. The worker of a stage that only an earlier layout had is
/// unknown; its own number is used.
int worker_of(const PipelineShape& shape, int stage) {
  return stage < shape.stages ? shape.worker_of(stage, 0) : stage;
}

}  // namespace

Trainer::Trainer(const Plan& plan, Team& team, const RunFolder* folder, Progress* progress,
                 const std::atomic<bool>* stop)
    : plan_(plan),
      team_(team),
      folder_(folder),
      progress_(progress),
      stop_(stop),
      stages_(plan.stages(team)),
      edges_(plan.edges(team)),
      exchanges_(plan.exchanges(team)),
      replicas_(held_replicas(plan, stages_, edges_, exchanges_)),
      measurements_(plan, team, stages_),
      within_(plan, stages_, [this](std::int64_t done) { add_evaluation(done, last_); }),
      programs_(plan),
      columns_(step_columns(plan.auxiliary, plan.experiment->lr_schedule.per_step())),
      last_(&plan.training) {
  if (!plan.experiment->pipeline.cuda_graphs) return;
  for (const at::Device device : plan.devices)
    if (device != plan.devices.front())
      throw experiment_error(plan.experiment->where("pipeline.device"),
                             "pipeline.cuda_graphs is true, and the stages are on ",
                             plan.devices.front().str(), " and ", device.str(),
                             "; expected one device");
  graphs_ = cuda_graphs(plan.devices.front());
}

std::vector<std::string> Trainer::resume() {
  if (folder_ == nullptr) return {};
  auto loaded = load_checkpoint(folder_->checkpoints(), plan_, replicas_, team_);
  if (!loaded) return {};
  state_ = std::move(loaded->state);
  measurements_.go_on(folder_->checkpoints(), loaded->probes);
  if (!keeps_steps()) return std::move(loaded->remarks);
  if (loaded->steps.name.empty())
    loaded->remarks.push_back(concat("steps.csv begins after ", plan_.drains.position_text(done()),
                                     ": until there the run had output.steps: false"));
  else
    steps_ = go_on_with_steps(folder_->checkpoints(), loaded->steps, done(), columns_);
  return std::move(loaded->remarks);
}

/// Whether this process writes a step log.
bool Trainer::keeps_steps() const {
  return folder_ != nullptr && team_.first() && plan_.experiment->output.steps;
}

void Trainer::begin_logs() {
  if (keeps_steps() && !steps_) steps_ = begin_steps(folder_->checkpoints(), done(), columns_);
  if (folder_ != nullptr) measurements_.keep_rows(folder_->checkpoints(), done());
  if (folder_ == nullptr || !team_.first() || !plan_.experiment->output.tensorboard) return;
  events_.emplace(folder_->path(), done(), std::ssize(state_.epochs));
  measurements_.show_in(*events_);
}

/// Whether the event file gets losses while a segment is trained, and not at its end.
bool Trainer::tells_losses() const {
  return events_ && RunRequest::tells_losses(plan_.experiment->pipeline.execution,
                                             plan_.training.schedule.shape.replicas);
}

/// The function that puts losses of the segment behind `first` mini-batches into the event file
/// while it is trained; null if they come at its end.
std::function<void(int, double)> Trainer::loss_recorder(std::int64_t first) {
  if (!tells_losses()) return nullptr;
  return [this, first](int minibatch, double loss) { events_->loss(first + minibatch, loss); };
}

/// Removes the row logs at the end if no checkpoint refers to them.
void Trainer::remove_logs() {
  if (plan_.drains.has_checkpoints()) return;
  std::error_code ignored;
  for (std::optional<RowLog>* log : {&steps_, &measurements_.rows()}) {
    if (!*log) continue;
    std::filesystem::remove((*log)->path(), ignored);
    log->reset();
  }
  if (team_.first())
    std::filesystem::remove(folder_->checkpoints(), ignored);  // succeeds only if it is empty
}

void Trainer::train() {
  const DrainPoints& drains = plan_.drains;
  if (folder_ != nullptr && done() == 0 && drains.has_checkpoints())
    begin_checkpoints(folder_->checkpoints(), plan_, team_);
  begin_logs();
  measurements_.try_out(done(), progress_);
  plan_.dataset->prepare();
  try {
    while (done() < drains.minibatches) train_to(drains.next(done()));
  } catch (const Error& error) {
    const std::string past = measurements_.farthest_past_edge();
    if (error.kind() != ErrorKind::NotFinite || past.empty()) throw;
    throw Error(error.kind(), concat(error.message(), "; when last measured, ", past),
                error.where());
  }
  tell_skipped();
  measurements_.tell_costs(seconds_, progress_);
  if (folder_ == nullptr) return;
  write_tables({});
  if (events_) events_->sync();
  remove_logs();
  if (!plan_.experiment->output.weights) return;
  const TensorFile weights = gathered_weights(plan_, team_, stages_);
  if (team_.first()) write_safetensors(folder_->final_weights(), weights);
}

/// Says how many updates loss scaling has skipped.
void Trainer::tell_skipped() {
  std::array<double, 2> counts{};  // skipped, all
  for (const auto& stage : stages_)
    if (stage && stage->loss_scale()) {
      counts[0] += static_cast<double>(stage->loss_scale()->skipped);
      counts[1] += static_cast<double>(stage->updates());
    }
  if (team_.size() > 1) team_.sum(counts);
  if (counts[0] > 0 && progress_ != nullptr)
    progress_->line(concat("note: ", counts[0], " of ", counts[1],
                           " updates of stages were skipped, because gradients in float16 were "
                           "not finite (dynamic loss scaling)"));
}

/// What all executions of this training have in common.
RunRequest Trainer::request(Batches& batches) const {
  const PipelineOptions& p = plan_.experiment->pipeline;
  return {.batches = batches,
          .lr = nullptr,
          .execution = p.execution,
          .threads = p.threads,
          .timeout = p.timeout,
          .on_minibatch = nullptr,
          .stop = stop_,
          .team = &team_,
          .log = log_,
          .edges = edges_.empty() ? nullptr : &edges_};
}

RunResult Trainer::run(const Program& program, std::int64_t first) {
  const Experiment& e = *plan_.experiment;
  const int per_epoch = plan_.minibatches;
  const auto epoch = static_cast<int>(first / per_epoch);
  const auto last_epoch = static_cast<int>((first + program.minibatches() - 1) / per_epoch);
  const auto skipped = static_cast<int>(first % per_epoch);
  Loader loader = plan_.training_loader(epoch, last_epoch + 1 - epoch, skipped);
  RunRequest segment = request(loader);
  segment.lr = [&](int minibatch) { return plan_.learning_rate(first + minibatch); };
  segment.seed = e.train.seed;
  segment.first_epoch = epoch;
  segment.first_minibatch = skipped;
  segment.minibatches_per_epoch = per_epoch;
  segment.sum_gradients = e.train.sum_gradients;
  if (progress_ != nullptr) segment.on_minibatch = [this](int) { progress_->step(); };
  segment.on_loss = loss_recorder(first);
  segment.trace = e.output.trace ? &trace_ : nullptr;
  segment.exchanges = exchanges_.empty() ? nullptr : &exchanges_;
  segment.graphs = graphs_.get();
  segment.observer = measurements_.begin(first);
  segment.interludes = within_.begin(first, first + program.minibatches());
  RunResult result = execute(program, stages_, segment);
  if (graphs_) tell_graphs(result.graphs, program);
  return result;
}

/// Says once what became of the graphs.
void Trainer::tell_graphs(const GraphsUsed& used, const Program& program) {
  if (progress_ == nullptr || std::exchange(told_graphs_, true)) return;
  if (used.rounds == 0)
    return progress_->line(
        concat("note: pipeline.cuda_graphs: no graph was launched: ",
               used.refusal.empty() ? "there are too few mini-batches in one go" : used.refusal));
  progress_->line(concat("pipeline.cuda_graphs: ", used.rounds, " of ", program.loop->rounds,
                         " rounds of the schedule were launched as ", counted(used.graphs, "graph"),
                         ", which repeat after ", counted(used.period, "round")));
}

/// Trains one segment, from an empty pipeline to an empty pipeline.
void Trainer::train_to(std::int64_t end) {
  const std::int64_t first = done();
  last_ = &programs_.segment(first, static_cast<int>(end - first));
  begun_ = std::chrono::steady_clock::now();
  const RunResult result = run(*last_, first);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun_;
  seconds_ += seconds.count();
  add(state_.traffic, result.traffic);
  keep_losses(result.losses, first);
  for (const std::vector<double>& losses : result.losses) {
    state_.open_losses.push_back(losses[0]);
    state_.open_seconds += seconds.count() / static_cast<double>(end - first);
    ++state_.minibatches;
    if (done() == end) {
      check_weights();
      begun_ = std::chrono::steady_clock::now();
      if (plan_.drains.evaluates_at(end)) add_evaluation(end, nullptr);
    }
    if (done() % plan_.minibatches == 0 || done() == plan_.drains.minibatches) finish_epoch();
  }
  check_replicas(plan_, team_, stages_, done());
  measurements_.finish(first, done(), progress_);
  save();
}

void Trainer::keep_losses(const std::vector<std::vector<double>>& losses, std::int64_t first) {
  std::vector<std::vector<double>> numbers = losses;
  if (plan_.experiment->lr_schedule.per_step())
    for (std::int64_t m = 0; m < std::ssize(numbers); ++m)
      numbers[static_cast<std::size_t>(m)].push_back(plan_.learning_rate(first + m));
  if (steps_) steps_->append(step_rows(numbers, first, plan_.minibatches));
  if (events_) events_->steps(numbers, first, columns_, tells_losses());
  if (collected_ != nullptr) collected_->insert(collected_->end(), losses.begin(), losses.end());
}

namespace {

/// Tokens of so many samples, with padding. Translations are padded batch by batch, to lengths that
/// only the batches know.
double tokens_in(double samples, const Dataset& dataset) {
  const bool of_one_length = dataset.vocabulary() > 0 && dataset.task() != Task::Translate;
  return of_one_length ? samples * static_cast<double>(dataset.sample_shape()[0]) : kNoNumber;
}

}  // namespace

/// Evaluates the weights after so many mini-batches, which the stages show. `within`: the program
/// that is paused meanwhile; null: none.
void Trainer::add_evaluation(std::int64_t minibatches, const Program* within) {
  const auto begin = std::chrono::steady_clock::now();
  EpochRow found{.epoch = static_cast<int>((minibatches - 1) / plan_.minibatches)};
  evaluate(
      plan_, stages_,
      [&](Batches& batches) {
        RunRequest evaluation = request(batches);
        evaluation.within = within;
        return evaluation;
      },
      found);
  const double samples = static_cast<double>(plan_.samples_in(minibatches));
  double seconds = state_.open_seconds + std::chrono::duration<double>(begin - begun_).count();
  for (const EpochRow& epoch : state_.epochs) seconds += epoch.seconds;
  state_.evaluations.push_back({.minibatches = minibatches,
                                .samples = samples,
                                .tokens = tokens_in(samples, *plan_.dataset),
                                .seconds = seconds,
                                .test_loss = found.test_loss,
                                .test_accuracy = found.test_accuracy,
                                .metrics = found.metrics});
  if (events_) events_->evaluation(state_.evaluations.back(), own_metrics());
  if (progress_ != nullptr)
    progress_->evaluation(state_.evaluations.back(), plan_.drains.minibatches, own_metrics());
  if (folder_ != nullptr && team_.first())
    folder_->write_evaluations(state_.evaluations, plan_.minibatches, own_metrics(),
                               {.content = false, .name = false});
  begun_ += std::chrono::steady_clock::now() - begin;
}

/// Adds the row of the epoch that has just been finished.
void Trainer::finish_epoch() {
  const Experiment& e = *plan_.experiment;
  const EpochOrder order{plan_.train, e.loader.batch_size, e.loader.drop_last};
  const std::int64_t first = std::ssize(state_.epochs) * std::int64_t{plan_.minibatches};
  EpochRow row{.epoch = static_cast<int>(std::ssize(state_.epochs)),
               .train_loss = mean_loss(state_.open_losses, order),
               .test_loss = kNoNumber,
               .test_accuracy = kNoNumber,
               .lr = plan_.learning_rate(first),
               .seconds = std::exchange(state_.open_seconds, 0)};
  std::int64_t samples = 0;
  for (int m = 0; m < static_cast<int>(std::ssize(state_.open_losses)); ++m)
    samples += order.size_of(m);
  state_.open_losses.clear();
  row.samples_per_second = static_cast<double>(samples) / row.seconds;
  const bool within = plan_.drains.evaluate_every > 0;
  const bool due = e.train.drain_each_epoch && (row.epoch + 1) % e.train.evaluate_every == 0;
  row.metrics.assign(e.metrics.size() - 1, kNoNumber);
  const auto known = std::ranges::find(state_.evaluations, done(), &EvaluationRow::minibatches);
  if (known != state_.evaluations.end()) {
    row.test_loss = known->test_loss;
    row.test_accuracy = known->test_accuracy;
    row.metrics = known->metrics;
  } else if (!within && (due || done() == plan_.drains.minibatches))
    evaluate(
        plan_, stages_, [this](Batches& batches) { return request(batches); }, row);
  state_.epochs.push_back(row);
  if (events_) events_->epoch(row, own_metrics());
  if (progress_ != nullptr) progress_->epoch(row, plan_.drains.epochs(), own_metrics());
}

/// Throws Error{NotFinite}, with the position in the training, if a weight is not finite after a
/// segment.
void Trainer::check_weights() const {
  for (const auto& stage : stages_) {
    if (!stage) continue;  // held by another process
    for (const auto& [name, tensor] : stage->named_state())
      if (!tensor.isfinite().all().item<bool>()) {
        const std::int64_t last = done() - 1, minibatch = last % plan_.minibatches;
        const bool whole = minibatch + 1 == plan_.minibatches;
        throw Error(ErrorKind::NotFinite,
                    concat("'", name, "' is not finite after ",
                           whole ? "" : concat("mini-batch ", minibatch, " of "), "epoch ",
                           last / plan_.minibatches, ", counted from 0 (",
                           counted(stage->optimizer_state().steps, "update"),
                           "); try a smaller learning rate"),
                    concat("stage ", stage->index()));
      }
  }
}

void Trainer::save() {
  if (folder_ == nullptr || !plan_.drains.checkpoint_at(done())) return;
  if (events_) events_->sync();  // no record before a checkpoint may be lost
  const std::optional<RowLog>& rows = measurements_.rows();
  save_checkpoint(folder_->checkpoints(), plan_, replicas_, state_,
                  {.steps = steps_ ? &*steps_ : nullptr, .probes = rows ? &*rows : nullptr}, team_);
  write_tables({.content = false, .name = false});  // a checkpoint holds all that is in them
}

/// Names of the metrics other than accuracy.
std::vector<std::string> Trainer::own_metrics() const {
  const auto& names = plan_.experiment->metric_names;
  return {names.begin() + 1, names.end()};
}

void Trainer::write_tables(Syncs syncs) const {
  if (!team_.first()) return;
  folder_->write_epochs(state_.epochs, own_metrics(), syncs);
  if (!state_.evaluations.empty())
    folder_->write_evaluations(state_.evaluations, plan_.minibatches, own_metrics(), syncs);
  if (steps_) steps_->copy_to(folder_->steps(), syncs);
  if (const auto& rows = measurements_.rows()) rows->copy_to(folder_->probes(), syncs);
  if (!state_.traffic.empty()) write_traffic(syncs);
}

/// Writes traffic.csv; the rates that it asks of links are those of this training's speed.
void Trainer::write_traffic(Syncs syncs) const {
  const PipelineShape& shape = plan_.training.schedule.shape;
  double seconds = state_.open_seconds;
  for (const EpochRow& epoch : state_.epochs) seconds += epoch.seconds;
  std::vector<TrafficRow> rows;
  for (const EdgeTraffic& edge : state_.traffic)
    rows.push_back({.edge = edge,
                    .from_worker = worker_of(shape, edge.from),
                    .to_worker = worker_of(shape, edge.to),
                    .minibatches = done(),
                    .seconds = seconds});
  folder_->write_traffic(rows, syncs);
}

}  // namespace pipewright
