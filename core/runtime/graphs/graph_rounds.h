// SPDX-License-Identifier: Apache-2.0
/// Decides which rounds of a program's loop are recorded as graphs, and from when on the graphs may
/// be launched instead. It knows nothing of a device but addresses.
///
/// A graph has the addresses of its tensors in it. Weights lie in a ring of versions, and what
/// passes keep moves about, so that only every L-th round finds everything where it was. L is not
/// computed but seen: the first rounds take their memory from the graphs' pool, and L is the
/// smallest distance at which two rounds in a row begin with the same addresses. Then L rounds are
/// recorded. If the round behind them begins with the addresses of the first, launching the graphs
/// again is what the next L rounds would do; if not, L rounds are recorded from there. All of this
/// rests on that every tensor that crosses the beginning of a round lies in a pool or is a version
/// of weights, and so among the addresses, or stays where it is for good.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

enum class RoundKind : std::uint8_t {
  Plain,     ///< as without graphs
  Pooled,    ///< its passes take their memory from the graphs' pool
  Recorded,  ///< its passes are recorded, and each graph is launched once
  Launched   ///< its passes are the launches of recorded graphs
};

class GraphRounds {
 public:
  /// Addresses of whatever is alive: what passes keep and send, and all weights; each in a place
  /// that tells its role.
  using Addresses = std::vector<std::uintptr_t>;

  /// Begins a round, which is the first of `left` that may have graphs; 0: it must be plain, or the
  /// loop is over.
  RoundKind begin(std::int64_t left, Addresses alive);
  /// No round will have graphs, because …
  void refuse(std::string why) { refusal_ = std::move(why); }

  RoundKind kind() const { return kind_; }
  /// L, of recorded and launched rounds.
  std::int64_t period() const { return period_; }
  /// Which of the L rounds it is.
  std::int64_t phase() const { return phase_; }
  /// Launched rounds since the graphs were recorded.
  std::int64_t launched() const { return launched_; }
  /// Why there are no graphs; "": nothing is known against them.
  const std::string& refusal() const { return refusal_; }

 private:
  RoundKind become(RoundKind kind);
  std::int64_t repetition() const;

  RoundKind kind_ = RoundKind::Plain;
  std::vector<Addresses> seen_;  ///< at the beginnings of pooled rounds
  Addresses recorded_from_;
  std::int64_t period_ = 0, phase_ = 0, launched_ = 0;
  int attempts_ = 0;
  std::string refusal_;
};

}  // namespace pipewright
