// SPDX-License-Identifier: Apache-2.0
/// The names of actions and workers that all drawings of a schedule share.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// Names for the actions and workers of one schedule, as short as that schedule allows.
class RenderLabels {
 public:
  explicit RenderLabels(const Schedule& schedule);

  /// "F3"; "F3.1" when there are micro-batches; "2F3" when a worker holds several stages.
  std::string action(const Action& action) const;
  /// "worker 3"
  std::string worker(std::size_t worker) const;
  /// "stage 1", "stages 0, 2", "stage 1, replica 0", "stage 0, replica 0; stage 3, replica 1"; ""
  /// for a worker without actions.
  std::string stages(std::size_t worker) const;

  bool several_stages() const { return several_stages_; }
  /// Whether each worker w holds stage w and nothing else, so that there is no need to name stages.
  bool plain() const { return plain_; }

 private:
  using Holding = std::map<int, std::set<int>>;  ///< replica → its stages
  int microbatches_;
  int replicas_;
  bool several_stages_ = false;
  bool plain_ = true;
  std::vector<Holding> workers_;
};

/// The weights that a pass reads: "2", or "2→5(+3)" when predicted.
std::string weights_text(int version, int ahead);

}  // namespace pipewright
