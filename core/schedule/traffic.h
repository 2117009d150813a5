// SPDX-License-Identifier: Apache-2.0
/// The traffic over the edges of a pipeline and into the sums of its replicas, as sent and
/// uncompressed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Traffic from one stage to another, all replicas together. From a stage to itself: what its
/// replicas contribute to the sums of their gradients, each its own part, however the sums are
/// made. (A ring all-reduce moves 2 (R − 1)/R times that over its links.)
struct EdgeTraffic {
  int from = 0, to = 0;       ///< stages; from > to: gradients; from == to: sums
  double messages = 0;        ///< sums: one per replica and reduction, whatever the rounds
  double value_bytes = 0;     ///< bytes of the tensors as the stages make them
  double sent_bytes = 0;      ///< bytes that crossed, headers included
  double encode_seconds = 0;  ///< host seconds spent encoding; 0 for sums (not measured)
  double decode_seconds = 0;  ///< host seconds spent decoding; 0 for sums (not measured)
  bool reduces() const { return from == to; }
  bool operator==(const EdgeTraffic&) const = default;
};

/// Bytes that a stage replica contributes to one reduction.
struct SummedBytes {
  std::size_t values = 0;  ///< bytes of its gradients
  std::size_t sent = 0;    ///< bytes sent in place of the gradients
};

/// Adds the traffic `more` to `sum`, edge by edge.
void add(std::vector<EdgeTraffic>& sum, const std::vector<EdgeTraffic>& more);

/// Counts the traffic of one execution. Sender and receiver of an (edge, replica) write different
/// counters, so their threads need no lock.
class TrafficCount {
 public:
  explicit TrafficCount(const PipelineShape& shape);

  void sent(int from, int to, int replica, std::size_t value_bytes, std::size_t sent_bytes,
            double seconds);
  void received(int from, int to, int replica, double seconds);
  /// Counts one replica's part of a reduction. Does nothing if there is one replica only.
  void summed(const Action& reduction, const SummedBytes& bytes);

  /// All counters, to be summed over processes that each counted a part.
  std::span<double> all() { return counts_; }
  /// The traffic of each edge: forward edges in order of stages, then backward ones, then the
  /// stages' sums. Edges that nothing crossed are left out.
  std::vector<EdgeTraffic> traffic() const;

 private:
  double* at(int from, int to, int replica);

  int replicas_;
  std::map<std::pair<int, int>, std::size_t> edges_;  ///< → its first counter
  std::vector<double> counts_;
};

}  // namespace pipewright
