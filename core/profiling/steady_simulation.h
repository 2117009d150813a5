// SPDX-License-Identifier: Apache-2.0
/// Simulates an experiment until its pipeline is steady, on as many descriptions of hardware as
/// wanted. Experiment, schedule and proof are made once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/profiling/codec_costs.h"
#include "core/profiling/cost_source.h"
#include "core/simulation/simulate.h"

namespace pipewright {

struct SteadySimulation {
  Simulation simulation;
  int minibatches = 0;               ///< that were simulated
  bool is_steady = false;            ///< what is_steady() says of it
  std::int64_t samples = 0;          ///< of a mini-batch
  std::string costs_from;            ///< origin of the costs in words
  std::vector<std::string> untimed;  ///< codecs whose time is not known
};

/// Whether the mini-batches of the first and of the second half of the simulation's middle half
/// take equally long, together and each as its counterpart, to one in a million, and no worker
/// holds more after that middle half than before its end.
bool is_steady(const Simulation& simulation);

/// Not for several threads at once; the cost source may be shared.
class SteadySimulator {
 public:
  SteadySimulator(Experiment experiment, CostSource& costs);

  int workers() const { return experiment_.shape(1).workers(); }
  /// Simulates `minibatches`, as `simulate --minibatches` does. With 0 it begins with a few that
  /// fill the pipeline, and doubles their number until the simulation is steady, or they are as
  /// many as steady_minibatches() says. Throws what CostSource::of(), validate() and simulate()
  /// throw.
  SteadySimulation on(const Hardware& hardware, int minibatches = 0);

 private:
  /// A schedule that validate() has accepted.
  struct Proved {
    Schedule schedule;
    double optimizer_state = 0;  ///< bytes per byte of parameters
  };

  SourcedCosts costs_on(const Hardware& hardware, std::vector<std::string>& untimed);
  const Proved& proved(int minibatches);

  Experiment experiment_;
  CostSource& costs_;
  std::optional<DeviceRates> cut_for_;  ///< the rates that decided a measured balance
  std::vector<EdgeMessage> messages_;   ///< of compressed edges, once they are cut
  std::map<int, Proved> schedules_;     ///< by their number of mini-batches
};

}  // namespace pipewright
