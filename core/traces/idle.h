// SPDX-License-Identifier: Apache-2.0
/// Where workers of a measured run were idle, and what was to blame.
///
/// An idle worker waits for one message, or for the other replicas of a reduction. At every moment
/// of the wait one of five is to blame:
///   link       the message is on its way, or its sender sends another one; between threads of one
///              processor there is no link, and it is called handover
///   codec      its sender encodes or decodes
///   straggler  its sender computes an action for longer than the median of that kind and stage
///   order      its sender computes that action, or one before it, for no longer than that
///   other      its sender runs no action and waits for none: the system, say, let others run
/// If the sender is idle itself, the cause of its own wait is charged. A worker that has nothing
/// left to do while others still compute is idle because of the order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/schedule/prove.h"
#include "core/simulation/span.h"

namespace pipewright {

enum class Blame : std::uint8_t { Link, Straggler, Order, Codec, Other };
inline constexpr std::array kBlames{Blame::Link, Blame::Straggler, Blame::Order, Blame::Codec,
                                    Blame::Other};
/// Seconds by Blame.
using BlameParts = std::array<double, kBlames.size()>;
/// How workers get their messages: over links, or handed over in the memory of one process.
enum class MessagePath : std::uint8_t { OverLinks, HandedOver };
const char* blame_name(Blame blame, MessagePath messages);

/// Time in which a worker did nothing.
struct Idle {
  int worker = 0;
  double begin = 0, end = 0;  ///< s
  std::size_t before = 0;     ///< index of the action that it waits with; behind the last: none
  int sender = -1;            ///< worker that it waits for; −1: it has nothing left to do
  BlameParts parts{};         ///< they add up to its length

  double length() const { return end - begin; }
  Blame blame() const;  ///< the largest part
};

/// Spans of a measured run of the schedule, parallel to Schedule::workers.
using Spans = std::vector<std::vector<Span>>;

/// All idle time up to the end of the last action, by worker and time. The spans must be on one
/// clock. Time between two actions of which the second needs no message is the worker's own.
std::vector<Idle> idle_times(const ProvedSchedule& proved, const Spans& spans);

/// Seconds by kind of action.
using StageMedians = std::array<double, kActionKinds.size()>;

/// The median of the seconds that actions of each kind compute, by stage: [stage][kind]; 0 where
/// there are none. Codecs and sending are not counted.
std::vector<StageMedians> median_seconds(const Schedule& schedule, const Spans& spans);

}  // namespace pipewright
