// SPDX-License-Identifier: Apache-2.0
/// The messages of weights that one stage lends to another, and of their gradients, and of the
/// gradients of copies (late_gradients.h), while a schedule runs on some hardware: when they are
/// sent and when they arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/base/as_size.h"
#include "core/schedule/late_gradients.h"
#include "core/schedule/lent_weights.h"
#include "core/schedule/prove.h"
#include "core/simulation/network.h"

namespace pipewright {

/// It keeps references.
class LentMessages {
 public:
  /// Throws where messages wait for their receives or block the device.
  LentMessages(const ProvedSchedule& proved, const Hardware& hardware, Network& network);

  /// Sends what a forward lends, at the time when it begins, or what a backward gives, at the time
  /// when it has ended. Actions here are the schedule's own.
  void send(const Action& action, double time);
  /// Whether all that the action takes has been sent: weights and gradients of copies, which it
  /// takes before it begins, or other gradients, before it ends.
  bool are_sent(const Action& action);
  /// When the last of these arrives, 0 if it takes none. They must have been sent.
  double received(const Action& action);
  /// Notes when a message arrives that was posted with this negative tag.
  void deliver(std::int64_t tag, double arrived);

 private:
  struct Way {
    int link = -1;  ///< −1: sender and receiver are the same worker
    std::int64_t bytes = 0;
  };
  struct Lent {
    Loan loan;
    std::vector<Way> there = {}, back = {};  ///< [replica]
    /// When they arrive, −1 before they are sent: [PassSlots::forward() of the borrower],
    /// [PassSlots::backward() of the owner].
    std::vector<double> weights = {}, gradients = {};
  };

  void check_sharing(int stage, int other) const;
  const Way& way_of(const LateGradient& gradient, int replica) const {
    return late_ways_[as_size(
        2 * (replica * static_cast<int>(schedule_.shape.tied.size()) + gradient.pair) +
        (gradient.back ? 1 : 0))];
  }
  double& arrival_of(const LateGradient& gradient) {
    return late_arrivals_.try_emplace(gradient, -1).first->second;
  }
  ActionPlace place_of(const Action& action) const;
  Way way(int from, int to, int replica, std::int64_t bytes);
  void send(const Way& way, double& arrival, double time);
  /// Calls `with` for the way and the arrival of each message that the action takes.
  void for_each_taken(const Action& action, const std::function<void(const Way&, double&)>& with);

  const Schedule& schedule_;
  const PassSlots& slots_;
  const Hardware& hardware_;
  Network& network_;
  const LentWeights lent_;
  const LateGradients late_;
  std::vector<Lent> all_;
  std::vector<Way> late_ways_;  ///< [replica][pair][from the first copy, from the second]
  std::map<LateGradient, double> late_arrivals_;
  std::vector<double*> posted_;  ///< the arrivals of posted messages, by −1 − their tag
};

}  // namespace pipewright
