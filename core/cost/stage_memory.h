/// How much memory a stage's worker needs: from a profile of the layers and what the schedule holds
/// at once. Exact where LibTorch's allocator is: measured peaks are met within a few percent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cost/cost.h"
#include "core/cost/profile.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// What a stage holds while one of its passes runs, in terms that no layer decides.
struct StageMoment {
  bool learns = false;  ///< adds to the weights' gradients
  bool bare = false;    ///< a forward that keeps its input only, to be recomputed
  int kept = 0;         ///< forwards that wait for their backwards, this pass's own included
  int inputs = 0;       ///< those of which there is the input only, the same
  int versions = 1;     ///< of the weights, predictions and memory of freed ones included
  bool added = false;   ///< passes have made gradients since the last update
  bool operator==(const StageMoment&) const = default;
};

/// [stage]: the moments that may need the most, whatever the layers. Of replica 0.
std::vector<std::vector<StageMoment>> stage_moments(const Schedule& schedule);

/// Bytes at the moment that needs the most.
struct StageMemory {
  std::int64_t weights = 0;      ///< all versions, and buffers
  std::int64_t optimizer = 0;    ///< its state
  std::int64_t activations = 0;  ///< kept by forwards, inputs included
  std::int64_t passing = 0;      ///< gradients, and what a pass needs for itself
  std::int64_t total() const { return weights + optimizer + activations + passing; }
};

/// Stages of a profile's layers. What waits in messages is not in it, nor are auxiliary heads.
class StageMemories {
 public:
  /// `optimizer_slots`: tensors as large as the weights that the optimizer keeps. The profile
  /// outlives this.
  StageMemories(const Profile& profile, std::vector<std::vector<StageMoment>> moments,
                int optimizer_slots);

  /// Of layers [begin, end) as that stage. Quick for one `begin` after another.
  StageMemory of(std::size_t begin, std::size_t end, int stage) const;
  std::vector<StageMemory> of_cut(std::span<const std::int64_t> balance) const;

 private:
  void fill_row(std::size_t begin) const;

  const Profile& profile_;
  std::vector<std::vector<StageMoment>> moments_;
  int slots_;
  mutable std::size_t row_begin_;
  mutable std::vector<StageCost> row_;  ///< [end − begin − 1]
};

}  // namespace pipewright
