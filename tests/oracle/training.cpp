// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include "gradient_rules.h"
#include "learning_rate.h"
#include "loss.h"
#include "optimizers.h"
#include "schemes.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>

namespace oracle {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// A gradient, and how many updates it is late at the one that applies it.
struct Late {
  Tensors gradient;
  int updates = 0;
};

/// One stage: its versions since the pipe was filled, and the gradient being gathered for the next.
struct Stage {
  Layers layers;
  std::vector<State> versions;
  std::vector<Tensors> of_run;  // all weights since the run began, for a queue that goes on
  OptimizerOptions optimizer;
  Tensors gradient;
  std::deque<Late> waiting;    // gradients for later updates, the oldest first
  std::vector<int> staleness;  // of the gradients of the run, each at its own update

  std::size_t main_tensors() const { return 2 * layers.size(); }
};

/// Rows [first, first + rows) of a mini-batch of `samples`.
struct Part {
  int first, rows, samples;
};

/// Parts of a mini-batch as tensor_split cuts it: sizes differ by at most one, the larger first.
Part cut(int first, int samples, int parts, int part) {
  const int size = samples / parts, longer = samples % parts;
  return {first + part * size + std::min(part, longer), size + (part < longer ? 1 : 0), samples};
}

/// Parts as torch.chunk cuts it: all are as large as the largest has to be, the last takes the
/// rest.
Part chunk(int first, int samples, int parts, int part) {
  const int size = (samples + parts - 1) / parts;
  return {first + part * size, std::min(size, samples - part * size), samples};
}

class Training {
 public:
  Training(const Experiment& experiment, const Data& data, const std::vector<Tensors>& initial)
      : experiment_(experiment), data_(data) {
    for (int k = 0; k < experiment.stages(); ++k)
      stages_.push_back({layers_of_stage(experiment, k),
                         {initial_state(initial[at(k)])},
                         {initial[at(k)]},
                         optimizer_of_stage(experiment, k),
                         {},
                         {},
                         {}});
  }

  Result train() {
    const int total = experiment_.steps_in_all();
    for (int minibatch = 0; minibatch < total; ++minibatch) {
      if (experiment_.is_drained_before(minibatch)) refill(minibatch);
      synchronous_ = experiment_.scheme.name == "pipemare" && minibatch < experiment_.scheme.warmup;
      if (experiment_.scheme.name == "pipemare" && minibatch == experiment_.scheme.warmup)
        refill(minibatch);
      learn(minibatch);
    }
    for (const Stage& stage : stages_) result_.weights.push_back(stage.versions.back().weights);
    return std::move(result_);
  }

 private:
  /// Versions count from 0 again; weights and optimizer state go on.
  void refill(int minibatch) {
    filled_at_ = minibatch;
    for (Stage& stage : stages_)
      stage.versions.erase(stage.versions.begin(), stage.versions.end() - 1);
  }

  void learn(int minibatch) {
    const int first = minibatch % experiment_.minibatches() * experiment_.batch_size;
    const int samples = std::min(experiment_.batch_size, experiment_.train_samples - first);
    for (Stage& stage : stages_) stage.gradient = zeros_like(stage.versions.back().weights);
    result_.losses.emplace_back(experiment_.has_heads() ? stages_.size() : 1, 0.0);
    for (int replica = 0; replica < experiment_.replicas; ++replica) {
      const Part own = cut(first, samples, experiment_.replicas, replica);
      for (int j = 0; j < experiment_.microbatches; ++j) {
        Part part = experiment_.microbatch_sizes == "even"
                        ? cut(own.first, own.rows, experiment_.microbatches, j)
                        : chunk(own.first, own.rows, experiment_.microbatches, j);
        part.samples = samples;
        pass(minibatch - filled_at_, j, part);
      }
    }
    std::vector<std::optional<Late>> due;
    double model_square = 0;
    for (int k = 0; k < experiment_.stages(); ++k) {
      due.push_back(take_due(k, minibatch - filled_at_));
      if (due.back()) model_square += square_of(due.back()->gradient);
    }
    for (int k = 0; k < experiment_.stages(); ++k) {
      Stage& stage = stages_[at(k)];
      State next =
          due[at(k)] ? updated(k, minibatch, *due[at(k)], model_square) : stage.versions.back();
      stage.of_run.push_back(next.weights);
      stage.versions.push_back(std::move(next));
    }
  }

  /// The gradient that the update of a mini-batch applies: that of `gradient_delay` updates before,
  /// over drains; none if there were not so many.
  std::optional<Late> take_due(int k, int t) {
    std::deque<Late>& waiting = stages_[at(k)].waiting;
    stages_[at(k)].staleness.push_back(staleness(k, t));
    waiting.push_back({stages_[at(k)].gradient, staleness(k, t) + experiment_.gradient_delay});
    if (std::ssize(waiting) <= experiment_.gradient_delay) return {};
    Late due = std::move(waiting.front());
    waiting.pop_front();
    return due;
  }

  /// The stage behind the update of a mini-batch of the run.
  State updated(int k, int minibatch, const Late& due, double model_square) {
    Stage& stage = stages_[at(k)];
    State& old = stage.versions.back();
    const double rate = learning_rate(experiment_, minibatch) *
                        rate_factor(experiment_, k, minibatch) *
                        rate_of_staleness(experiment_, due.updates);
    const Tensors read_by_forward = read(k, weights_of(k, minibatch - filled_at_, 0).forward);
    const Tensors gradient = ruled(experiment_, old, read_by_forward, model_square, due.gradient);
    State next = step(stage.optimizer, old, gradient, rate, due.updates);
    note_step(experiment_, old, next, rate);
    const double kept = drift_decay(experiment_, k);
    next.drift =
        combine(kept, old.drift, 1.0 - kept, combine(1.0, next.weights, -1.0, old.weights));
    return next;
  }

  /// Updates of stage k between the version that a forward of mini-batch t has read, predicted
  /// steps taken off, and W^(t), of the micro-batch for which these are the most.
  int staleness(int k, int t) const {
    int most = 0;
    for (int j = 0; j < experiment_.microbatches; ++j) {
      const Reading read = weights_of(k, t, j).forward;
      most = std::max(most, t - read.version - read.ahead);
    }
    return most;
  }

  Loss loss_of(const Matrix& logits, std::span<const int> labels, int samples) const {
    return experiment_.loss == "cross_entropy"
               ? cross_entropy(logits, labels, experiment_.label_smoothing, samples)
               : binary_cross_entropy(logits, labels, samples);
  }

  /// Forward and all backwards of one micro-batch.
  void pass(int t, int j, const Part& part) {
    const std::span labels(data_.y.data() + part.first, at(part.rows));
    std::vector<Trace> traces;
    Matrix x = data_.x.middleRows(part.first, part.rows);
    for (int k = 0; k < experiment_.stages(); ++k) {
      const Tensors weights = read(k, weights_of(k, t, j).forward);
      traces.push_back(forward(stages_[at(k)].layers, main_part(k, weights), x));
      x = traces.back().output;
    }
    const int last = experiment_.stages() - 1;
    const Loss loss = loss_of(x, labels, part.samples);
    result_.losses.back()[0] += loss.value;
    propagate(last, loss.gradient, traces, t, j);
    if (!experiment_.has_heads()) return;
    for (int site = 0; site < last; ++site)
      propagate(site, head(site, traces[at(site)].output, labels, part.samples), traces, t, j);
  }

  /// Loss of the auxiliary head of a stage; the head's own gradient; returns ∂loss/∂h.
  Matrix head(int site, const Matrix& h, std::span<const int> labels, int samples) {
    Stage& stage = stages_[at(site)];
    const Tensors& weights = stage.versions.back().weights;
    const std::span parameters = std::span(weights).subspan(stage.main_tensors());
    const Layers linear{Activation::Identity};
    const Trace trace = forward(linear, parameters, h);
    const Loss loss = loss_of(trace.output, labels, samples);
    result_.losses.back()[at(site + 1)] += loss.value;
    return backward(linear, parameters, trace, loss.gradient, 1.0,
                    std::span(stage.gradient).subspan(stage.main_tensors()));
  }

  /// Takes the gradient of a loss site from the output of its stage back to the first stage.
  void propagate(int site, Matrix gradient, const std::vector<Trace>& traces, int t, int j) {
    for (int k = site; k >= 0; --k) {
      const Tensors weights =
          reads_queue(experiment_)
              ? stages_[at(k)].of_run.at(at(queued_version(experiment_, k, filled_at_ + t, j)))
              : read(k, weights_of(k, t, j).backward);
      const Layers& layers = stages_[at(k)].layers;
      const bool again = replays(experiment_) && k + 1 < experiment_.stages();
      const Trace trace = again
                              ? forward(layers, main_part(k, weights), traces[at(k)].inputs.front())
                              : traces[at(k)];
      gradient = backward(layers, main_part(k, weights), trace, std::move(gradient),
                          share_of_loss(experiment_, k, site), stages_[at(k)].gradient);
    }
  }

  Readings weights_of(int k, int t, int j) const {
    return synchronous_ ? Readings{{t}, {t}} : readings(experiment_, k, t, j);
  }

  Tensors read(int k, const Reading& reading) const {
    if (experiment_.scheme.name == "pipemare") {
      const State& state = stages_[at(k)].versions.at(at(reading.version));
      return combine(1.0, state.weights, reading.ahead, state.drift);
    }
    const bool behind = reading.pass == Pass::Forward && experiment_.scheme.prediction_lr == "last";
    const int updated = filled_at_ + reading.version;  // in the whole run, when it predicts
    const double lr = rate_of_update(k, behind ? std::max(0, updated - 1) : updated);
    return predict(stages_[at(k)].optimizer, experiment_.scheme,
                   stages_[at(k)].versions.at(at(reading.version)), reading.ahead, reading.pass, lr,
                   rates_of_steps(k, updated, reading.ahead));
  }

  /// The learning rate of an update of the run, by how late its gradient is. An update without a
  /// gradient moves nothing, and no prediction has anything to extrapolate by then.
  double rate_of_update(int k, int update) const {
    const int own = update - experiment_.gradient_delay;
    const std::vector<int>& known = stages_[at(k)].staleness;
    const int late = own < 0                   ? 0
                     : own < std::ssize(known) ? known[at(own)]
                                               : staleness(k, own - filled_at_);
    return learning_rate(experiment_, update) *
           rate_of_staleness(experiment_, late + experiment_.gradient_delay);
  }

  /// Of the updates after so many of the whole run, the last rate for those that never come; none
  /// unless predictions ask for them.
  std::vector<double> rates_of_steps(int k, int updated, int ahead) const {
    std::vector<double> rates;
    if (experiment_.scheme.prediction_lr != "each") return rates;
    const int last = experiment_.steps_in_all() - 1;
    for (int j = 0; j < ahead; ++j) rates.push_back(rate_of_update(k, std::min(updated + j, last)));
    return rates;
  }

  std::span<const Matrix> main_part(int k, const Tensors& weights) const {
    return std::span(weights).first(stages_[at(k)].main_tensors());
  }

  const Experiment& experiment_;
  const Data& data_;
  std::vector<Stage> stages_;
  int filled_at_ = 0;         // mini-batch of the run with which the pipe was last filled
  bool synchronous_ = false;  // PipeMare's warm-up
  Result result_;
};

}  // namespace

Result train(const Experiment& experiment, const Data& data, const std::vector<Tensors>& initial) {
  return Training(experiment, data, initial).train();
}

}  // namespace oracle
