// SPDX-License-Identifier: Apache-2.0
/// An experiment for the oracle: those options of an experiment file that it implements, as plain
/// values.
#pragma once

#include "mlp.h"

#include <cstdint>
#include <string>
#include <vector>

namespace oracle {

/// Options of schemes, with the names of the experiment file. Each scheme reads only its own.
struct SchemeOptions {
  std::string name = "model_parallel";
  bool weight_stashing = true;             // pipedream
  bool vertical_sync = false;              // pipedream
  int version = 1;                         // spectrain
  std::string s_mode = "constant";         // spectrain, pipeoptim
  std::string velocity = "buffer";         // spectrain, pipeoptim; of SGD only
  bool as_coded = false;                   // spectrain: PipeDream at (N−k)·lr
  bool refill = true;                      // pipedream; spectrain as coded
  int in_flight = 0;                       // pipedream; 0 = all
  int s_offset = 0;                        // pipeoptim
  std::string prediction_lr = "next";      // spectrain, pipeoptim; of forwards
  bool adamw_decay_in_prediction = false;  // pipeoptim
  int width = 0;                           // interlocking; 0 = all
  std::string combine = "furthest";        // interlocking
  std::vector<int> delay;                  // delayed_sgd; one, or one per stage
  int annealing = 0;                       // pipemare: K
  bool correction = true;                  // pipemare
  double decay = 0.135;                    // pipemare: D
  int warmup = 0;                          // pipemare
  int chunks = 2;                          // interleaved
  int waves = 1;                           // hanayo
  double horizon = 1;                      // lwp
  bool horizon_in_steps = false;           // lwp; else in delays
};

struct OptimizerOptions {
  std::string name = "sgd";  // sgd | adam | adamw | lion | nadamw | adan | muon | soap |
                             // spike_compensation | rmsprop
  double lr = 0.1;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool biases_decay = true;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.99;  // adan
  double eps = 1e-8;
  double momentum_decay = 0.004;  // nadamw
  double momentum_by_delay = 0;   // none
  double alpha = 0.99;            // rmsprop
  int delay = -1;                 // spike_compensation; -1 = that of each gradient
  bool plain = false;             // muon: not nesterov
  int frequency = 10;             // soap: steps from one basis to the next
};

struct LearningRateOptions {
  // constant | step | multistep | poly | cosine | linear | constant_then_linear
  std::string name = "constant";
  std::string per = "epoch";    // epoch | step
  int size = 1;                 // step
  std::vector<int> milestones;  // multistep
  double gamma = 0.1;           // step, multistep
  double power = 1;             // poly
  double constant = 0.5;        // constant_then_linear
  double end_lr = 0;            // poly, cosine, linear, constant_then_linear
  int warmup_length = 0;
  double warmup_share = 0;  // instead of the length
  double warmup_start = 0;
};

/// A gradient rule. Each reads only its own options.
struct RuleOptions {
  std::string name;         // clip | dc_asgd | error_feedback | gap_aware | staleness_lr
  double norm = 1;          // clip
  bool over_model = false;  // clip
  double lambda = 0.04;     // dc_asgd
  bool adaptive = false;    // dc_asgd
  double decay = 0.95;      // dc_asgd, gap_aware
  double eps = 1e-7;        // dc_asgd, gap_aware
  double power = 1;         // staleness_lr
  double coefficient = 1;   // error_feedback
};

struct Experiment {
  std::string name = "oracle";
  std::vector<int> widths;  // of the MLP: input, hidden, …, classes
  Activation activation = Activation::Tanh;
  std::vector<int> balance;            // layers per stage
  std::string loss = "cross_entropy";  // cross_entropy | binary_cross_entropy
  std::string average = "samples";  // cross_entropy: samples | tokens; each sample has one target
  double label_smoothing = 0;       // cross_entropy
  int train_samples = 0;
  int batch_size = 1;
  bool drop_last = true;
  int microbatches = 1;
  std::string microbatch_sizes = "even";  // even | torch_chunk
  int replicas = 1;
  std::string execution = "serial";
  int epochs = 1;
  int steps = 0;  // instead of epochs
  bool drain_each_epoch = true;
  SchemeOptions scheme;
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;
  std::vector<RuleOptions> rules;
  int gradient_delay = 0;       // perturb
  int checkpoint_every = 0;     // mini-batches, at which the pipe drains; 0 = never
  bool resumed = false;         // goes on from its last checkpoint, as if it had been killed
  std::uint64_t data_seed = 0;  // of samples and initial weights; not in the experiment file

  int stages() const { return static_cast<int>(balance.size()); }
  /// Mini-batches of an epoch.
  int minibatches() const {
    return drop_last ? train_samples / batch_size : (train_samples + batch_size - 1) / batch_size;
  }
  int steps_in_all() const { return steps > 0 ? steps : epochs * minibatches(); }
  /// Whether the pipe is empty before that mini-batch of the run.
  bool is_drained_before(int minibatch) const {
    return (drain_each_epoch && minibatch % minibatches() == 0) ||
           (checkpoint_every > 0 && minibatch % checkpoint_every == 0);
  }
  /// Whether stages have an auxiliary head, which is then the last two of their tensors.
  bool has_heads() const { return scheme.name == "interlocking"; }
};

/// A data set with one sample per row.
struct Data {
  Matrix x;
  std::vector<int> y;
};

/// Activations of the layers of stage k.
Layers layers_of_stage(const Experiment& experiment, int stage);

/// Names of the tensors of stage k, in their order: `<layer>.weight`, `<layer>.bias`,
/// `heads.<k>.…`.
std::vector<std::string> parameter_names(const Experiment& experiment, int stage);

/// Shapes (rows, columns) of the tensors of stage k, in their order; a bias is 1 × out.
std::vector<std::pair<int, int>> parameter_shapes(const Experiment& experiment, int stage);

}  // namespace oracle
