// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/lent_messages.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"

namespace pipewright {

LentMessages::LentMessages(const ProvedSchedule& proved, const Hardware& hardware, Network& network)
    : schedule_(proved.schedule),
      slots_(proved.index.slots()),
      hardware_(hardware),
      network_(network),
      lent_(proved.schedule, proved.index, proved.versions),
      late_(proved) {
  for (const Loan& loan : lent_.loans()) {
    const auto& [owner, borrower, bytes, parameter] = loan;
    check_sharing(owner, borrower);
    Lent& lent = all_.emplace_back(Lent{.loan = loan});
    lent.weights.assign(slots_.forwards(), -1);
    lent.gradients.assign(slots_.backwards(), -1);
    for (int replica = 0; replica < schedule_.shape.replicas; ++replica) {
      lent.there.push_back(way(owner, borrower, replica, bytes));
      lent.back.push_back(way(borrower, owner, replica, bytes));
    }
  }
  for (int replica = 0; replica < schedule_.shape.replicas; ++replica)
    for (const TiedCopies& tied : schedule_.shape.tied) {
      check_sharing(tied.first, tied.second);
      late_ways_.push_back(way(tied.first, tied.second, replica, tied.bytes));
      late_ways_.push_back(way(tied.second, tied.first, replica, tied.bytes));
    }
}

void LentMessages::check_sharing(int stage, int other) const {
  if (hardware_.taken_as_sent() || hardware_.sending_blocks)
    throw Error(ErrorKind::Experiment,
                concat("stages ", stage, " and ", other,
                       " share weights, whose messages are not known where messages wait for "
                       "their receives or block the device; expected on '",
                       hardware_.name,
                       "' another copies.receives than in_order and rendezvous, and "
                       "copies.block_compute: false"));
}

ActionPlace LentMessages::place_of(const Action& action) const {
  const int w = schedule_.shape.worker_of(action.stage, action.replica);
  return {w, static_cast<int>(&action - schedule_.workers[as_size(w)].data())};
}

LentMessages::Way LentMessages::way(int from, int to, int replica, std::int64_t bytes) {
  const int sender = schedule_.shape.worker_of(from, replica);
  const int receiver = schedule_.shape.worker_of(to, replica);
  return {sender == receiver ? -1 : network_.link(sender, receiver), bytes};
}

void LentMessages::send(const Action& action, double time) {
  for (const LateGradient& each : late_.given(place_of(action)))
    send(way_of(each, action.replica), arrival_of(each), time);
  const std::size_t replica = as_size(action.replica);
  for (Lent& each : all_) {
    const auto& [owner, borrower, bytes, parameter] = each.loan;
    if (action.kind == ActionKind::Forward && action.stage == owner) {
      Action of_borrower = action;
      of_borrower.stage = borrower;
      if (lent_.take(of_borrower, owner))
        send(each.there[replica], each.weights[slots_.forward(action, borrower)], time);
    } else if (action.stage == borrower && is_backward(action.kind) && lent_.give(action, owner)) {
      send(each.back[replica], each.gradients[slots_.backward(action, borrower)], time);
    }
  }
}

void LentMessages::send(const Way& way, double& arrival, double time) {
  if (way.link < 0 || hardware_.receives == Receives::ProgramOrder) {
    arrival = time;
  } else if (network_.must_post()) {
    network_.post({way.link, time, way.bytes, -1 - std::ssize(posted_)});
    posted_.push_back(&arrival);
  } else {
    arrival = network_.carry(way.link, time, way.bytes).arrived;
  }
}

void LentMessages::for_each_taken(const Action& action,
                                  const std::function<void(const Way&, double&)>& with) {
  for (const LateGradient& each : late_.taken(place_of(action)))
    with(way_of(each, action.replica), arrival_of(each));
  const std::size_t replica = as_size(action.replica);
  for (Lent& each : all_) {
    const auto& [owner, borrower, bytes, parameter] = each.loan;
    if (action.kind == ActionKind::Forward && action.stage == borrower) {
      if (lent_.take(action, owner))
        with(each.there[replica], each.weights[slots_.forward(action, borrower)]);
    } else if (action.stage == owner) {
      if (const ActionPlace giver = lent_.giver(action, borrower); giver != kNowhere)
        with(each.back[replica],
             each.gradients[slots_.backward(action_at(schedule_, giver), borrower)]);
    }
  }
}

bool LentMessages::are_sent(const Action& action) {
  bool sent = true;
  for_each_taken(action, [&](const Way&, double arrival) { sent &= arrival >= 0; });
  return sent;
}

double LentMessages::received(const Action& action) {
  double last = 0;
  for_each_taken(action, [&](const Way& way, double& arrival) {
    if (hardware_.receives == Receives::ProgramOrder && way.link >= 0)
      arrival = network_.carry(way.link, arrival, way.bytes).arrived;
    last = std::max(last, arrival);
  });
  return last;
}

void LentMessages::deliver(std::int64_t tag, double arrived) {
  *posted_[static_cast<std::size_t>(-1 - tag)] = arrived;
}

}  // namespace pipewright
