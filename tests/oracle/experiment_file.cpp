// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <charconv>
#include <sstream>

namespace oracle {
namespace {

/// Shortest decimal that reads back as the same double, without an exponent.
std::string number(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  return {text, end};
}

std::string truth(bool value) {
  return value ? "true" : "false";
}

std::string list(const std::vector<int>& values) {
  std::string text = "[";
  for (const int value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

std::string activation(Activation value) {
  switch (value) {
    case Activation::Relu: return "relu";
    case Activation::Tanh: return "tanh";
    case Activation::Identity: break;
  }
  return "identity";
}

std::string scheme(const SchemeOptions& options) {
  std::string text = "{name: " + options.name;
  if (options.name == "pipedream")
    text += ", weight_stashing: " + truth(options.weight_stashing) +
            ", vertical_sync: " + truth(options.vertical_sync) +
            ", refill: " + truth(options.refill) +
            ", in_flight: " + (options.in_flight == 0 ? "all" : std::to_string(options.in_flight));
  if (options.name == "lwp")
    text += ", horizon: " + number(options.horizon) +
            ", unit: " + (options.horizon_in_steps ? "steps" : "delay");
  if (options.name == "hanayo") text += ", waves: " + std::to_string(options.waves);
  if (options.name == "spectrain")
    text += ", version: " + std::to_string(options.version) +
            ", as_coded: " + truth(options.as_coded) + ", refill: " + truth(options.refill);
  if (options.name == "pipeoptim")
    text += ", s_offset: " + std::to_string(options.s_offset) +
            ", adamw_decay_in_prediction: " + truth(options.adamw_decay_in_prediction);
  if (options.name == "spectrain" || options.name == "pipeoptim")
    text += ", s_mode: " + options.s_mode + ", velocity: " + options.velocity +
            ", prediction_lr: " + options.prediction_lr;
  if (options.name == "interlocking")
    text += ", width: " + (options.width == 0 ? "all" : std::to_string(options.width)) +
            ", combine: " + options.combine + ", train_unused_heads: true";
  if (options.name == "delayed_sgd")
    text += ", delay: " +
            (options.delay.size() == 1 ? std::to_string(options.delay[0]) : list(options.delay));
  if (options.name == "pipemare")
    text += ", annealing: " + std::to_string(options.annealing) +
            ", correction: " + truth(options.correction) + ", decay: " + number(options.decay) +
            ", warmup: " + std::to_string(options.warmup);
  if (options.name == "interleaved") text += ", chunks: " + std::to_string(options.chunks);
  return text + "}";
}

/// Options that have PyTorch's default are left out.
std::string optimizer(const OptimizerOptions& options) {
  std::string text = "{name: " + options.name + ", lr: " + number(options.lr) +
                     ", weight_decay: " + number(options.weight_decay);
  if (options.name == "sgd") {
    text += ", momentum: " + number(options.momentum) + ", nesterov: " + truth(options.nesterov);
    if (options.dampening != 0) text += ", dampening: " + number(options.dampening);
  } else if (options.name == "muon" || options.name == "spike_compensation") {
    text += ", momentum: " + number(options.momentum);
    if (options.plain) text += ", nesterov: false";
    if (options.delay >= 0) text += ", delay: " + std::to_string(options.delay);
  } else if (options.name == "rmsprop") {
    text += ", alpha: " + number(options.alpha) + ", eps: " + number(options.eps) +
            ", momentum: " + number(options.momentum);
  } else if (options.name == "lion") {
    text += ", betas: [" + number(options.beta1) + ", " + number(options.beta2) + "]";
  } else if (options.name == "adan" || options.name == "nadamw" || options.name == "soap") {
    text += ", betas: [" + number(options.beta1) + ", " + number(options.beta2) +
            (options.name == "adan" ? ", " + number(options.beta3) : "") +
            "], eps: " + number(options.eps);
    if (options.name == "soap")
      text += ", precondition_frequency: " + std::to_string(options.frequency);
    if (options.name == "nadamw") text += ", momentum_decay: " + number(options.momentum_decay);
  } else {
    text += ", betas: [" + number(options.beta1) + ", " + number(options.beta2) +
            "], eps: " + number(options.eps);
  }
  if (!options.biases_decay) text += ", no_decay: [biases]";
  if (options.momentum_by_delay != 0)
    text += ", momentum_by_delay: " + number(options.momentum_by_delay);
  return text + "}";
}

std::string rules(const std::vector<RuleOptions>& all) {
  std::string text = "[";
  for (const RuleOptions& rule : all) {
    text += (text.size() > 1 ? ", {name: " : "{name: ") + rule.name;
    if (rule.name == "clip")
      text += ", norm: " + number(rule.norm) + (rule.over_model ? ", over: model" : "");
    if (rule.name == "dc_asgd")
      text += ", lambda: " + number(rule.lambda) + ", adaptive: " + truth(rule.adaptive);
    if (rule.name == "dc_asgd" || rule.name == "gap_aware")
      text += ", decay: " + number(rule.decay) + ", eps: " + number(rule.eps);
    if (rule.name == "error_feedback") text += ", coefficient: " + number(rule.coefficient);
    if (rule.name == "staleness_lr") text += ", power: " + number(rule.power);
    text += "}";
  }
  return text + "]";
}

std::string lr_schedule(const LearningRateOptions& options) {
  std::string text = "{name: " + options.name + ", per: " + options.per;
  if (options.name == "step") text += ", size: " + std::to_string(options.size);
  if (options.name == "multistep") text += ", milestones: " + list(options.milestones);
  if (options.name == "step" || options.name == "multistep")
    text += ", gamma: " + number(options.gamma);
  if (options.name == "poly") text += ", power: " + number(options.power);
  if (options.name == "constant_then_linear") text += ", constant: " + number(options.constant);
  if (options.name == "poly" || options.name == "cosine" || options.name == "linear" ||
      options.name == "constant_then_linear")
    text += ", end_lr: " + number(options.end_lr);
  if (options.warmup_length > 0)
    text += ", warmup: {length: " + std::to_string(options.warmup_length) +
            ", start: " + number(options.warmup_start) + "}";
  if (options.warmup_share > 0)
    text += ", warmup: {share: " + number(options.warmup_share) +
            ", start: " + number(options.warmup_start) + "}";
  return text + "}";
}

}  // namespace

std::string experiment_file(const Experiment& e) {
  std::ostringstream file;
  // A name may have 100 letters.
  file << "name: " << e.name.substr(0, 100) << "\n"
       << "dataset: {name: tensors, file: data.safetensors}\n"
       << "loader: {batch_size: " << e.batch_size
       << ", shuffle: false, drop_last: " << truth(e.drop_last) << "}\n"
       << "model: {name: mlp, widths: " << list(e.widths)
       << ", activation: " << activation(e.activation)
       << ", head: linear, weights: init.safetensors}\n"
       << "loss: {name: " << e.loss
       << (e.loss == "cross_entropy"
               ? ", average: " + e.average + ", label_smoothing: " + number(e.label_smoothing)
               : std::string())
       << "}\n"
       << "pipeline: {stages: " << e.stages() << ", microbatches: " << e.microbatches
       << ", microbatch_sizes: " << e.microbatch_sizes << ", replicas: " << e.replicas
       << ", balance: " << list(e.balance) << ", execution: " << e.execution << "}\n"
       << "scheme: " << scheme(e.scheme) << "\n"
       << "optimizer: " << optimizer(e.optimizer) << "\n"
       << "lr_schedule: " << lr_schedule(e.learning_rate) << "\n"
       << "gradient_rules: " << rules(e.rules) << "\n"
       << "perturb: {gradient_delay: " << e.gradient_delay << "}\n"
       << "train: {" << (e.steps > 0 ? "steps: " : "epochs: ") << (e.steps > 0 ? e.steps : e.epochs)
       << ", seed: 1, precision: float64";
  file << ", drain: " << (e.drain_each_epoch ? "epoch" : "never");
  // A checkpoint drains the pipe, so an undrained run has none before its end.
  if (e.checkpoint_every > 0)
    file << ", checkpoint: {every: " << e.checkpoint_every << ", unit: minibatch}";
  else if (!e.drain_each_epoch)
    file << ", checkpoint: {every: 1000, unit: epoch}";
  file << "}\n";
  file << "output: {steps: true, weights: true}\n";
  return file.str();
}

}  // namespace oracle
