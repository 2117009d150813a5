// SPDX-License-Identifier: Apache-2.0
#include "schemes.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace oracle {
namespace {

/// The indices of a pass and what follows from them alone.
struct Place {
  int N, k, D, M, t, f;
  int n_F;
};

Place place(const Experiment& experiment, int stage, int minibatch, int microbatch) {
  Place p{};
  p.N = experiment.stages();
  p.k = stage;
  p.D = p.N - 1 - stage;
  p.M = experiment.microbatches;
  p.t = minibatch;
  p.f = minibatch * p.M + microbatch;
  p.n_F = std::max(0, p.f - p.D) / p.M;
  return p;
}

int floor_div(int a, int b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// Steps between a forward and the update its gradient goes into: ⌊f/M⌋ − ⌊(f−D)/M⌋ as if the pipe
/// had always been full (D for M = 1), or as it is in the fill.
int distance(const Place& p, const std::string& s_mode) {
  return s_mode == "exact" ? p.t - p.n_F : p.t - floor_div(p.f - p.D, p.M);
}

Readings same(const Reading& reading) {
  return {reading, reading};
}

Readings latest(const Place& p) {
  return same({p.t});
}

/// Stashing: B = F = W^(n_F). Vertical sync: all stages read what the first one reads. Without
/// either B = W^(t). With at most n in flight, f is forwarded after f − min(D, n−1) backwards.
Readings pipedream(const SchemeOptions& scheme, const Place& p) {
  const auto read_by = [&](int depth) {
    const int late = scheme.in_flight == 0 ? depth : std::min(depth, scheme.in_flight - 1);
    return std::max(0, p.f - late) / p.M;
  };
  if (scheme.vertical_sync) return same({read_by(p.N - 1)});
  if (scheme.weight_stashing) return same({read_by(p.D)});
  return {{read_by(p.D)}, {p.t}};
}

/// F = W^(n_F), B = W^(t): PACI, and features replay, whose activations are W^(t)'s, too.
Readings newest(const Place& p) {
  return {{p.n_F}, {p.t}};
}

/// F = W^(t), but for the first two micro-batches of a mini-batch at the first stage, which are on
/// their way before the update: W^(t−1). B = W^(t).
Readings amdp(const Place& p) {
  const bool early = p.k == 0 && p.f % p.M < 2;
  return {{early ? std::max(0, p.t - 1) : p.t}, {p.t}};
}

/// T steps ahead of W^(n_F) in both passes: T = horizon · (t − n_F), rounded, or the horizon.
Readings lwp(const SchemeOptions& scheme, const Place& p) {
  const double unit = scheme.horizon_in_steps ? 1.0 : p.t - p.n_F;
  return same({p.n_F, static_cast<int>(std::floor(scheme.horizon * unit + 0.5))});
}

/// W^(t−1) in both passes, W^(0) for the first mini-batch.
Readings pipedream_2bw(const Place& p) {
  return same({std::max(0, p.t - 1)});
}

/// v1: F ⌊k/2⌋ + D ahead, B ⌊k/2⌋ ahead of W^(t), both fresh. v2: D ahead, the same tensors in
/// backward.
Readings spectrain(const SchemeOptions& scheme, const Place& p) {
  if (scheme.as_coded) return same({p.n_F});
  const int s = distance(p, scheme.s_mode);
  if (scheme.version == 2) return same({p.n_F, s});
  const int beyond = p.k / 2;
  return {{p.n_F, s + beyond}, {p.t, beyond, Pass::Backward}};
}

/// F predicted (s_offset steps too far on request), B = W^(t).
Readings pipeoptim(const SchemeOptions& scheme, const Place& p) {
  return {{p.n_F, distance(p, scheme.s_mode) + scheme.s_offset}, {p.t}};
}

/// The first micro-batch of a mini-batch predicts, once for F and once for B; its siblings use the
/// same Ŵ.
Readings xpipe(const Experiment& experiment, const Place& p) {
  const double N = p.N, T = p.M, k = p.k;
  const int s_F = static_cast<int>(std::round((N + T - k / 2.0 - 2.0) / T));
  const int s_B = static_cast<int>(std::round((T + std::floor(k / 2.0) - 1.0) / T));
  const Place bellwether = place(experiment, p.k, p.t, 0);
  return {{bellwether.n_F, s_F}, {p.t, s_B, Pass::Backward}};
}

Readings delayed_sgd(const SchemeOptions& scheme, const Place& p) {
  const std::size_t index = scheme.delay.size() == 1 ? 0 : static_cast<std::size_t>(p.k);
  return same({std::max(0, p.t - scheme.delay.at(index))});
}

/// F = W^(n_F); B from W^(t) back to it.
Readings pipemare(const SchemeOptions& scheme, const Place& p) {
  return {{p.n_F}, {p.t, scheme.correction ? p.n_F - p.t : 0, Pass::Backward}};
}

double delay_in_updates(const Experiment& experiment, int stage) {
  return std::max(1.0, (experiment.stages() - 1.0 - stage) / experiment.microbatches);
}

}  // namespace

bool replays(const Experiment& experiment) {
  return experiment.scheme.name == "features_replay";
}

bool reads_queue(const Experiment& experiment) {
  return !experiment.scheme.refill;
}

int queued_version(const Experiment& experiment, int stage, int minibatch, int microbatch) {
  const Place p = place(experiment, stage, minibatch, microbatch);
  return std::max(0, floor_div(p.f - p.D, p.M));
}

double rate_factor(const Experiment& experiment, int stage, int minibatch) {
  if (experiment.scheme.as_coded) return experiment.stages() - stage;
  const int K = experiment.scheme.annealing, i = minibatch - experiment.scheme.warmup;
  if (experiment.scheme.name != "pipemare" || i < 0 || i >= K) return 1.0;
  return 1.0 / std::pow(delay_in_updates(experiment, stage), 1.0 - static_cast<double>(i) / K);
}

double drift_decay(const Experiment& experiment, int stage) {
  return std::pow(experiment.scheme.decay, 1.0 / delay_in_updates(experiment, stage));
}

Readings readings(const Experiment& experiment, int stage, int minibatch, int microbatch) {
  const SchemeOptions& scheme = experiment.scheme;
  const Place p = place(experiment, stage, minibatch, microbatch);
  for (const char* exact : {"data_parallel", "model_parallel", "gpipe", "one_f_one_b", "seq1f1b",
                            "interlocking", "interleaved", "zb_h1", "zb_h2", "zb_v", "v_half",
                            "v_min", "hanayo", "dualpipe_v", "chimera", "dualpipe"})
    if (scheme.name == exact) return latest(p);
  if (scheme.name == "pipedream") return pipedream(scheme, p);
  if (scheme.name == "paci" || replays(experiment)) return newest(p);
  if (scheme.name == "amdp") return amdp(p);
  if (scheme.name == "lwp") return lwp(scheme, p);
  if (scheme.name == "pipedream_2bw") return pipedream_2bw(p);
  if (scheme.name == "spectrain") return spectrain(scheme, p);
  if (scheme.name == "pipeoptim") return pipeoptim(scheme, p);
  if (scheme.name == "xpipe") return xpipe(experiment, p);
  if (scheme.name == "pipemare") return pipemare(scheme, p);
  if (scheme.name == "delayed_sgd") return delayed_sgd(scheme, p);
  throw std::invalid_argument("the oracle knows no scheme '" + scheme.name + "'");
}

OptimizerOptions optimizer_of_stage(const Experiment& experiment, int stage) {
  OptimizerOptions options = experiment.optimizer;
  if (options.momentum_by_delay == 0) return options;
  constexpr int kLate = 1000;
  int delay = 0;
  for (int j = 0; j < experiment.microbatches; ++j)
    delay = std::max(delay, kLate - readings(experiment, stage, kLate, j).forward.version);
  delay += experiment.gradient_delay;
  const double share = std::min(1.0, static_cast<double>(delay) / experiment.stages());
  for (double* const momentum : {&options.momentum, &options.beta1})
    *momentum += share * (options.momentum_by_delay - *momentum);
  return options;
}

double share_of_loss(const Experiment& experiment, int stage, int site) {
  const int last = experiment.stages() - 1;
  if (experiment.scheme.name != "interlocking") return site == last ? 1.0 : 0.0;
  const int width = experiment.scheme.width == 0 ? last + 1 : experiment.scheme.width;
  const int furthest = std::min(stage + width - 1, last);
  if (experiment.scheme.combine == "furthest") return site == furthest ? 1.0 : 0.0;
  if (site < stage || site > furthest) return 0.0;
  return experiment.scheme.combine == "mean" ? 1.0 / (furthest - stage + 1) : 1.0;
}

}  // namespace oracle
