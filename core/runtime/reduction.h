/// The sum of a stage's gradients over its replicas, the same bits whoever comes first.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/stage/stage.h"

namespace pipewright {

/// Gathers one contribution per replica, then holds their sum, added in order 0 … R−1. Not
/// synchronised: its owner is.
class Reduction {
 public:
  explicit Reduction(int replicas) : stages_(static_cast<std::size_t>(replicas), nullptr) {}

  /// The replica's gradients are final. When the last one comes, every replica's gradients become
  /// the sum (shared memory, read-only until the next update). Returns whether that happened.
  bool contribute(int replica, Stage& stage);
  /// How many sums have been made.
  int rounds() const { return rounds_; }

 private:
  std::vector<Stage*> stages_;
  int contributed_ = 0;
  int rounds_ = 0;
};

}  // namespace pipewright
