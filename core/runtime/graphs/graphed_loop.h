// SPDX-License-Identifier: Apache-2.0
/// The rounds of a program's loop in `serial` where a device records graphs: which of them may have
/// graphs, and what the execution takes over from launched rounds.
#pragma once

#include <memory>
#include <vector>

#include "core/runtime/graphs/graphed_passes.h"
#include "core/runtime/pass_samples.h"
#include "core/runtime/run_request.h"
#include "core/runtime/transport.h"

namespace pipewright {

/// Used by one thread.
class GraphedLoop {
 public:
  /// All arguments must outlive it, and request.graphs must be set.
  GraphedLoop(const Program& program, const std::vector<std::unique_ptr<Stage>>& stages,
              const RunRequest& request, const PassSamples& samples, Transport& transport,
              TrafficCount& traffic);

  /// Whether that place of the execution order lies before a round of the loop or behind the last.
  bool is_boundary(std::int64_t position) const;
  /// Begins what follows a boundary, of an execution that pauses at `end`. All graphs have ended.
  void begin_round(std::int64_t position, std::int64_t end);

  GraphedPasses& passes() { return passes_; }
  const GraphedPasses& passes() const { return passes_; }
  GraphsUsed used() const;

 private:
  void find_boundary();
  std::int64_t rounds_from(std::int64_t position, std::int64_t end);
  int first_odd(int from);
  void take_over(std::int64_t rounds);

  const Program& program_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  const RunRequest& request_;
  const PassSamples& samples_;
  Transport& transport_;
  TrafficCount& traffic_;
  GraphedPasses passes_;
  int most_copies_;                    ///< of a stage's weights
  std::int64_t begin_ = 0, size_ = 0;  ///< of the first round, in the execution order
  std::int64_t rounds_ = 0;
  int first_ = 0, last_ = 0;  ///< mini-batches of the first round
  int odd_ = 0;               ///< the last answer of first_odd()
  std::vector<double> traffic_before_, traffic_of_period_;
  GraphsUsed used_;
};

}  // namespace pipewright
