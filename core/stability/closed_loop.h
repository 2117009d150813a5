// SPDX-License-Identifier: Apache-2.0
/// The closed loop of updates and readings. A period of the recurrence is a linear map of the
/// stages' states; this is that map, in two forms:
///  - `gain(z)`: if everything grows by the factor z each period and the gradients, times the
///    learning rate, are q, then what the gradients read is gain(z)·q per unit of learning rate. So
///    z is an eigenvalue of the period's map exactly if det(1 − lr·gain(z)) = 0.
///  - `matrix(lr)`: the map itself, on states and the old versions that somebody still reads. With
///    one stage and one update a period it is similar to the companion matrix.
#pragma once

#include <complex>
#include <vector>

#include "core/stability/eigenvalues.h"
#include "core/stability/hessian.h"
#include "core/stability/recurrence.h"
#include "core/stability/stage_map.h"

namespace pipewright {

struct LoopOptions {
  double decay_lr = 0;  ///< learning rate with which weights decay (LinearRule::l2, decoupled)
  /// PipeMare's Δ as a part of the stage's own curvature: where forward and backward read different
  /// weights, the gradient is (λ + Δ)w_forward − Δ·w_backward (Yang et al., 2021, section 3.2).
  double discrepancy = 0;
};

class ClosedLoop {
 public:
  /// `hessian` has a row for each of `stages`, in which a stage stands once for each of its
  /// weights; stages that are not there do not move.
  ClosedLoop(const Recurrence& recurrence, const LinearRule& rule, const std::vector<int>& stages,
             const Hessian& hessian, const LoopOptions& options);

  int updates() const { return updates_; }        ///< of a period, all weights together
  int longest_delay() const { return longest_; }  ///< in periods
  bool decays() const { return decays_; }         ///< weights shrink without any gradient
  /// True if, at zero curvature, no mode grows and the weights are the only modes of modulus 1.
  bool rests() const;
  /// [updates × updates]
  SquareMatrix<std::complex<double>> gain(std::complex<double> z) const;
  SquareMatrix<double> matrix(double lr) const;
  int states() const;  ///< rows of matrix()

 private:
  /// One stage's part in what a gradient reads.
  struct Reader {
    int gradient = 0;  ///< row
    int stage = 0;     ///< index of `loops_`
    int update = 0;    ///< of the period, before which the version was newest
    int period = 0;    ///< 0 is the current one, −1 the one before
    StateRow row{};    ///< of the state, curvature and weights of terms included
  };
  struct StageLoop {
    std::vector<UpdateMap> updates;
    int first = 0;   ///< number of its first update among those of all stages
    int oldest = 0;  ///< version that somebody still reads, relative to the period
    std::array<bool, kStateParts> read{};  ///< which parts of old states are read
    double drift_decay = 1;
  };
  class Walk;

  void add(const Reading& reading, const StateRow& row, int gradient, int stage, double factor);

  std::vector<StageLoop> loops_;
  std::vector<Reader> readers_;
  int updates_ = 0, longest_ = 0;
  bool decays_ = false;
};

}  // namespace pipewright
