// SPDX-License-Identifier: Apache-2.0
/// When the gradients of parameters of which stages have a copy each cross
/// (PipelineShape::tied). A copy applies its own gradient with its own update, and the other one's
/// with the first update, of the same mini-batch or a later one, that the schedule puts behind the
/// pass which completes that gradient. The schedule's order is meant, in which passes wait for each
/// other, and not the time that they take: so it is known before, and nobody waits longer than for
/// the message. A gradient that no update can apply any more does not cross; when the pipeline has
/// been drained the copies are made equal.
#pragma once

#include <map>
#include <vector>

#include "core/schedule/action_place.h"

namespace pipewright {

struct ProvedSchedule;

/// The gradient of a copy of the pair PipelineShape::tied[pair], the second one's if `back`, that
/// crosses when the pass has ended.
struct LateGradient {
  ActionPlace pass;
  int pair = 0;
  bool back = false;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the comparison of a pair for a null
  auto operator<=>(const LateGradient&) const = default;
};

class LateGradients {
 public:
  explicit LateGradients(const ProvedSchedule& proved);

  /// The gradients of the stage's own passes that cross when this one has ended.
  const std::vector<LateGradient>& given(ActionPlace pass) const { return at(given_, pass); }
  /// Those that the stage adds before this update, or before the sum over replicas that precedes
  /// it, in the order of their passes.
  const std::vector<LateGradient>& taken(ActionPlace update) const { return at(taken_, update); }
  /// By how many mini-batches a copy applies the other one's gradients later than its own, at most:
  /// the first of the pair if `back`.
  int lag(int pair, bool back) const;

 private:
  using Gradients = std::map<ActionPlace, std::vector<LateGradient>>;
  static const std::vector<LateGradient>& at(const Gradients& all, ActionPlace place);
  void join(const ProvedSchedule& proved, int pair, bool back);

  Gradients given_, taken_;
  std::map<std::pair<int, bool>, int> lag_;
};

}  // namespace pipewright
