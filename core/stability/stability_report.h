// SPDX-License-Identifier: Apache-2.0
/// The edges of all stages of an experiment as text, CSV and JSON, beside the curvature that a run
/// has measured.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/stability/edges.h"

namespace pipewright {

struct StageStability {
  StageDelay delay;
  std::string rule;  ///< "none", or how weights are predicted: "forward +3 optimizer"
  double edge = 0;   ///< of the stage alone, learning rate × curvature
};

/// The whole pipeline on one quadratic loss.
struct CoupledStability {
  double edge = 0;      ///< the largest stable learning rate
  int minibatches = 1;  ///< of a period
  /// At the experiment's learning rate, for a period; empty where that is too large a matrix.
  std::optional<double> spectral_radius;
};

/// Curvature that the probe `sharpness` has measured beside a run: the last largest eigenvalues of
/// the Hessian, preconditioned if LinearRule::preconditioned.
struct MeasuredCurvature {
  std::map<int, double> stages;  ///< of a stage's block
  std::optional<double> model;   ///< of the whole model
  std::string when;              ///< of the last measurement: "epoch 0, mini-batch 5"
  /// Of all measurements of stages the one that is furthest beyond its stage's edge.
  struct Furthest {
    int stage = 0;
    double curvature = 0;
    std::string when;
  };
  std::optional<Furthest> furthest = {};

  bool empty() const { return stages.empty() && !model; }
};

struct StabilityReport {
  std::vector<StageStability> stages;
  double lr = 0;      ///< at which curvatures are judged
  Dynamics dynamics;  ///< from which the edges follow
  double effective_delay = 0;
  int first_mismatch = -1;  ///< first stage whose backward reads other weights than its forward
  std::optional<CoupledStability> coupled;
  MeasuredCurvature measured;
};

StabilityReport stability_report(const Dynamics& dynamics);
/// `progress`, which may be empty, is called before each set of eigenvalues.
CoupledStability coupled_stability(const Dynamics& dynamics, const Hessian& hessian,
                                   const Blocks& blocks = {},
                                   const std::function<void()>& progress = {});

/// The number of the stage with the smallest edge; the first of equal ones.
int tightest_stage(const StabilityReport& report);

/// "delay 3, momentum 0.9"
std::string circumstances(const StabilityReport& report, const StageStability& stage);

/// A table with a row for each stage, and what else there is.
std::string stability_text(const StabilityReport& report);
/// Where the learning rate and a stage's curvature stand: "lr 0.03 × λ 4.1 = 0.123 is past stage
/// 0's edge 0.0348 (delay 3, momentum 0.9); stage 3 (delay 0) allows 3.8".
std::string standing_text(const StabilityReport& report, int stage, double curvature);
/// One sentence on a run: which stage is nearest to its edge or farthest past it at the curvature
/// that it had, and up to which learning rate that curvature would be stable; "" if none was
/// measured.
std::string measured_text(const StabilityReport& report);
/// The last sentence of a report: measured_text() or, without measurements, the smallest
/// edge of a stage, the largest, and the edge of the whole pipeline.
std::string answer_text(const StabilityReport& report);
std::string stability_csv(const StabilityReport& report);
/// {"stages": [{"stage", "forward_delay", "backward_delay", "rule", "edge"}, …], "lr", …}; null
/// stands for an edge that does not exist, where every learning rate is stable.
Value stability_value(const StabilityReport& report);
/// "smallest lr × curvature at the edge: …": one line for `check`.
std::string stability_line(const StabilityReport& report);

}  // namespace pipewright
