/// What crossed the edges of a pipeline and what its replicas summed, and what that would have been
/// uncompressed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// From one stage to another, all replicas together. From a stage to itself: what its replicas put
/// into the sums of their gradients, each its own part, whatever way the sums are made. (A ring
/// moves 2 (R − 1)/R times that over its links.)
struct EdgeTraffic {
  int from = 0, to = 0;       ///< from > to: gradients
  double messages = 0;        ///< into sums: one per replica and reduction, in however many rounds
  double value_bytes = 0;     ///< of the tensors as stages make them
  double sent_bytes = 0;      ///< of what crossed instead, headers and all
  double encode_seconds = 0;  ///< of the host, as are …
  double decode_seconds = 0;  ///< … these; of sums neither is measured
  bool reduces() const { return from == to; }
  bool operator==(const EdgeTraffic&) const = default;
};

/// Of one reduction.
struct SummedBytes {
  std::size_t values = 0;  ///< of the gradients
  std::size_t sent = 0;    ///< of what goes into sums instead
};

/// Adds what crossed later to what crossed before, edge by edge.
void add(std::vector<EdgeTraffic>& sum, const std::vector<EdgeTraffic>& more);

/// Counts of one execution. What the sender counts and what the receiver counts are different
/// numbers of each (edge, replica), so nobody waits.
class TrafficCount {
 public:
  explicit TrafficCount(const PipelineShape& shape);

  void sent(int from, int to, int replica, std::size_t value_bytes, std::size_t sent_bytes,
            double seconds);
  void received(int from, int to, int replica, double seconds);
  /// By a reduction; one replica has nobody to add to.
  void summed(const Action& reduction, const SummedBytes& bytes);

  /// Of processes that saw a part each: to be summed.
  std::span<double> all() { return counts_; }
  /// Forward edges in order of stages, then backward ones, then stages' sums; those that nothing
  /// crossed are left out.
  std::vector<EdgeTraffic> traffic() const;

 private:
  double* at(int from, int to, int replica);

  int replicas_;
  std::map<std::pair<int, int>, std::size_t> edges_;  ///< → first of its counts
  std::vector<double> counts_;
};

}  // namespace pipewright
