// SPDX-License-Identifier: Apache-2.0
/// How much memory a stage's worker needs, from a profile of the layers and what the schedule holds
/// at once. Host copies are taken to be done when the worker's next pass begins. Exact but for
/// LibTorch's allocator: measured peaks are met within a few percent.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/cost/profile.h"
#include "core/schedule/lent_weights.h"
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
  int head_added = 0;       ///< the same of passes of the head
  int head_gradients = 0;   ///< kept gradients of heads, this pass's included
  bool takes_lent = false;  ///< the gradient of a weight that it lends is there beside its own
  /// [owner] the copies and the sum that it holds of a weight which it borrows from that stage
  /// (lent_weights.h); empty: none of any.
  std::vector<int> borrowed = {};
  bool operator==(const StageMoment&) const = default;
};

/// Weights that several layers compute with. Each stage can have any of these layers.
struct SharedWeights {
  /// A weight of the layer `owner` that later layers borrow, once for each stage that has some.
  struct Lent {
    std::size_t owner = 0;
    std::int64_t bytes = 0;
    std::vector<std::size_t> borrowers = {};  ///< ascending
  };
  std::vector<Lent> lent;
  /// [layer] bytes of the gradients that it sends to other layers' copies; empty: none.
  std::vector<std::int64_t> copied = {};

  /// All loans of 1 byte that there can be between stages, if so many layers are cut into so many.
  std::vector<Loan> between(int layers, int stages) const;
};

/// Whether it is a backward of the loss of its own stage, the last one's or an auxiliary head's.
inline bool starts_at_own_loss(const Action& action) {
  return is_backward(action.kind) && action.loss == action.stage;
}

/// For each stage, the moments of replica 0 that may need the most memory, whatever its layers are.
/// `loans`: between which stages weights can be lent.
std::vector<std::vector<StageMoment>> stage_moments(const ProvedSchedule& proved,
                                                    const std::vector<Loan>& loans = {});

/// Bytes at the moment that needs the most.
struct StageMemory {
  std::int64_t weights = 0;      ///< all versions, buffers, borrowed weights, HeldBesides::fixed
  std::int64_t optimizer = 0;    ///< its state
  std::int64_t activations = 0;  ///< kept by forwards, inputs included
  std::int64_t passing = 0;      ///< gradients, and temporary memory of the pass
  std::int64_t total() const { return weights + optimizer + activations + passing; }
};

/// What stages hold besides what a profile says of their layers.
struct HeldBesides {
  AuxiliaryHeads heads = {};
  /// Bytes of tensors other than slots that the optimizer keeps for each layer, those of heads left
  /// out; empty: none.
  std::vector<std::int64_t> tables = {};
  int slices = 1;  ///< those of a micro-batch, if each is a pass
  SharedWeights shared = {};
  std::int64_t fixed = 0;  ///< bytes that each worker holds besides (SimulationOptions::fixed)
};

/// The memory of stages made of a profile's layers. Messages that wait to be taken are not counted.
/// Only one thread may use it, because it caches one row.
class StageMemories {
 public:
  /// `optimizer_slots` is the number of tensors as large as the weights that the optimizer keeps.
  /// The profile must outlive this object.
  StageMemories(const Profile& profile, std::vector<std::vector<StageMoment>> moments,
                int optimizer_slots, HeldBesides besides = {});

  /// The memory of layers [begin, end) as that stage. Fast if calls with the same `begin` follow
  /// each other. Weights that it shares with other stages are counted as if these had as few layers
  /// as there can be next to it: their owner is in the earliest stage that it can be in, and
  /// borrowers are in as many as there can be. So it may be more than what of_cut() says, but not
  /// where the first layer owns the weight and the last one borrows it, as in `gpt` and `decoder`.
  StageMemory of(std::size_t begin, std::size_t end, int stage) const;
  std::vector<StageMemory> of_cut(std::span<const std::int64_t> balance) const;

 private:
  using StageOf = std::function<int(std::size_t layer)>;

  StageMemory of(std::size_t begin, std::size_t end, int stage, const StageOf& stage_of) const;
  std::int64_t shared_bytes(std::size_t begin, std::size_t end, const StageMoment& moment,
                            const StageOf& stage_of) const;
  void fill_row(std::size_t begin) const;
  StageCost cost_of(std::size_t begin, std::size_t end, int stage) const;

  const Profile& profile_;
  std::vector<std::vector<StageMoment>> moments_;
  int slots_;
  HeldBesides besides_;
  mutable std::size_t row_begin_;
  mutable std::vector<StageCost> row_;  ///< [end − begin − 1], for row_begin_
};

}  // namespace pipewright
