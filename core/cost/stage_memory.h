// SPDX-License-Identifier: Apache-2.0
/// How much memory a stage's worker needs, from a profile of the layers and what the schedule holds
/// at once. Host copies are taken to be done when the worker's next pass begins. Exact but for
/// LibTorch's allocator: measured peaks are met within a few percent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/cost/profile.h"
#include "core/schedule/prove.h"

namespace pipewright {

/// The things that a stage holds while one of its passes runs, counted whatever its layers are.
struct StageMoment {
  bool learns = false;   ///< the pass adds to the weights' gradients
  bool bare = false;     ///< the pass is a forward that keeps its input only, to be recomputed
  bool head = false;     ///< the pass is the auxiliary head's
  bool of_head = false;  ///< the pass is a backward that starts from the head's kept gradient
  int kept = 0;          ///< forwards whose activations wait for a backward, this one's included
  int inputs = 0;        ///< forwards of which only the input is kept or on the device, this one's
                         ///< included
  int versions = 1;      ///< most copies of the weights so far, predictions included
  int halves = 0;        ///< input halves of backwards whose weights' half is not done
  int added = 0;  ///< backwards that have made gradients since the last update: 0, 1, 2 or more
  int head_added = 0;         ///< the same of passes of the head
  int head_gradients = 0;     ///< kept gradients of heads, this pass's included
  std::int64_t borrowed = 0;  ///< bytes of borrowed weights and their gradients (lent_weights.h)
  bool operator==(const StageMoment&) const = default;
};

/// Whether it is a backward of the loss of its own stage, the last one's or an auxiliary head's.
inline bool starts_at_own_loss(const Action& action) {
  return is_backward(action.kind) && action.loss == action.stage;
}

/// For each stage, the moments of replica 0 that may need the most memory, whatever its layers are.
std::vector<std::vector<StageMoment>> stage_moments(const ProvedSchedule& proved);

/// Bytes at the moment that needs the most.
struct StageMemory {
  std::int64_t weights = 0;      ///< all versions, buffers, and borrowed weights
  std::int64_t optimizer = 0;    ///< its state
  std::int64_t activations = 0;  ///< kept by forwards, inputs included
  std::int64_t passing = 0;      ///< gradients, and temporary memory of the pass
  std::int64_t total() const { return weights + optimizer + activations + passing; }
};

/// The memory of stages made of a profile's layers. Messages that wait to be taken are not counted.
/// Only one thread may use it, because it caches one row.
class StageMemories {
 public:
  /// `optimizer_slots` is the number of tensors as large as the weights that the optimizer keeps.
  /// The profile must outlive this object. `tables`: bytes of other tensors that it keeps for each
  /// layer, those of heads left out; empty: none. `slices`: those of a micro-batch, if each
  /// is a pass.
  StageMemories(const Profile& profile, std::vector<std::vector<StageMoment>> moments,
                int optimizer_slots, AuxiliaryHeads heads = {},
                std::vector<std::int64_t> tables = {}, int slices = 1);

  /// The memory of layers [begin, end) as that stage. Fast if calls with the same `begin` follow
  /// each other.
  StageMemory of(std::size_t begin, std::size_t end, int stage) const;
  std::vector<StageMemory> of_cut(std::span<const std::int64_t> balance) const;

 private:
  void fill_row(std::size_t begin) const;
  StageCost cost_of(std::size_t begin, std::size_t end, int stage) const;

  const Profile& profile_;
  std::vector<std::vector<StageMoment>> moments_;
  int slots_;
  AuxiliaryHeads heads_;
  std::vector<std::int64_t> tables_;
  int slices_;
  mutable std::size_t row_begin_;
  mutable std::vector<StageCost> row_;  ///< [end − begin − 1], for row_begin_
};

}  // namespace pipewright
