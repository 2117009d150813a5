// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/traffic.h"

#include <algorithm>

#include "core/base/as_size.h"

namespace pipewright {
namespace {

constexpr std::size_t kCounts = 5;

}  // namespace

void add(std::vector<EdgeTraffic>& sum, const std::vector<EdgeTraffic>& more) {
  for (const EdgeTraffic& edge : more) {
    const auto same = std::ranges::find_if(
        sum, [&](const EdgeTraffic& old) { return old.from == edge.from && old.to == edge.to; });
    if (same == sum.end()) {
      sum.push_back(edge);
      continue;
    }
    same->messages += edge.messages;
    same->value_bytes += edge.value_bytes;
    same->sent_bytes += edge.sent_bytes;
    same->encode_seconds += edge.encode_seconds;
    same->decode_seconds += edge.decode_seconds;
  }
}

TrafficCount::TrafficCount(const PipelineShape& shape) : replicas_(shape.replicas) {
  const auto add = [&](int from, int to) {
    for (const auto& edge : {std::pair(from, to), std::pair(to, from)})
      if (edges_.try_emplace(edge, counts_.size()).second)
        counts_.resize(counts_.size() + kCounts * as_size(replicas_), 0);
  };
  for (int stage = 0; stage + 1 < shape.stages; ++stage) add(stage, stage + 1);
  for (const Skip& skip : shape.skips) add(skip.from, skip.to);
  for (const TiedCopies& tied : shape.tied)
    if (tied.first != tied.second) add(tied.first, tied.second);
  if (shape.replicas == 1) return;
  for (int stage = 0; stage < shape.stages; ++stage) add(stage, stage);
}

double* TrafficCount::at(int from, int to, int replica) {
  return counts_.data() + edges_.at({from, to}) + kCounts * as_size(replica);
}

void TrafficCount::sent(int from, int to, int replica, std::size_t value_bytes,
                        std::size_t sent_bytes, double seconds) {
  double* const counts = at(from, to, replica);
  counts[0] += 1;
  counts[1] += static_cast<double>(value_bytes);
  counts[2] += static_cast<double>(sent_bytes);
  counts[3] += seconds;
}

void TrafficCount::received(int from, int to, int replica, double seconds) {
  at(from, to, replica)[4] += seconds;
}

void TrafficCount::summed(const Action& reduction, const SummedBytes& bytes) {
  if (replicas_ > 1)
    sent(reduction.stage, reduction.stage, reduction.replica, bytes.values, bytes.sent, 0);
}

std::vector<EdgeTraffic> TrafficCount::traffic() const {
  std::vector<EdgeTraffic> all;
  for (const auto& [edge, first] : edges_) {
    EdgeTraffic sum{.from = edge.first, .to = edge.second};
    for (int replica = 0; replica < replicas_; ++replica) {
      const double* const counts = counts_.data() + first + kCounts * as_size(replica);
      sum.messages += counts[0];
      sum.value_bytes += counts[1];
      sum.sent_bytes += counts[2];
      sum.encode_seconds += counts[3];
      sum.decode_seconds += counts[4];
    }
    if (sum.messages > 0) all.push_back(sum);
  }
  std::ranges::stable_sort(all, {}, [](const EdgeTraffic& edge) {
    return edge.reduces() ? 2 : edge.from < edge.to ? 0 : 1;
  });
  return all;
}

}  // namespace pipewright
