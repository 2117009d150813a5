// SPDX-License-Identifier: Apache-2.0
/// Simulates an experiment until its pipeline is steady, on as many descriptions of hardware as
/// wanted. Experiment, schedule and proof are made once. `simulate`, `simulate --sweep` and the
/// modelled metrics of tables all take their figures from here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/measuring/codec_costs.h"
#include "core/measuring/cost_source.h"
#include "core/schedule/prove.h"
#include "core/simulation/simulate.h"

namespace pipewright {

/// A number of mini-batches for half of which an asynchronous pipeline is in its steady state.
int steady_minibatches(const Experiment& experiment);

/// How many mini-batches are simulated where nobody says it: steady_minibatches() or, if these have
/// more actions than are simulated within seconds, as many as have not, but enough to fill the
/// pipeline.
int shown_minibatches(const Experiment& experiment);

/// The cost of one more mini-batch in the steady state, without fill and drain.
struct SteadyFigures {
  double seconds = 0;  ///< a mini-batch
  double samples_per_second = 0;
  double bubble = 0;       ///< idle fraction of all workers' time
  std::int64_t bytes = 0;  ///< a mini-batch, over all links together
};

struct SteadySimulation {
  Simulation simulation;
  int minibatches = 0;               ///< that were simulated
  bool is_steady = false;            ///< what is_steady() says of it
  std::int64_t samples = 0;          ///< of a mini-batch
  std::string costs_from;            ///< origin of the costs in words
  std::vector<std::string> untimed;  ///< codecs whose time is not known
  std::vector<StageCost> costs;      ///< that were simulated

  SteadyFigures figures() const;
};

/// Whether the mini-batches of the first and of the second half of the simulation's middle half
/// take equally long, together and each as its counterpart, to one in a million, each worker begins
/// its actions of the one half as long after those of the other, so that none runs ahead, and no
/// worker holds more after that middle half than before its end.
bool is_steady(const Simulation& simulation);

struct SteadySettings {
  /// 0: begin with a few that fill the pipeline, and double their number until the simulation is
  /// steady, or they are as many as shown_minibatches() says.
  int minibatches = 0;
  bool memory_over_time = false;  ///< whether every step of memory is kept
  bool transfers = false;         ///< whether every message is kept
  bool written = false;           ///< whether every action goes into a file, which takes memory
};

/// Bytes of the optimizer's tables at each stage where the costs' weights are not as large as the
/// model's: in proportion to them. `tables`: those of the model.
std::vector<std::int64_t> tables_in_costs(std::vector<std::int64_t> tables,
                                          const Experiment& experiment,
                                          const std::vector<StageCost>& costs);

/// Not for several threads at once; the cost source may be shared.
class SteadySimulator {
 public:
  using Proof = ProvedSchedule (*)(Schedule&&);

  /// `proof`: prove(), or another that throws what it throws.
  SteadySimulator(Experiment experiment, CostSource& costs, Proof proof = prove);

  const Experiment& experiment() const { return experiment_; }
  PipelineShape shape() const { return experiment_.shape(1); }
  int workers() const { return shape().workers(); }
  /// Throws what CostSource::of(), the proof and simulate() throw, and Error{Data} where the
  /// simulation itself would take more memory than this process can get.
  SteadySimulation on(const Hardware& hardware, const SteadySettings& settings = {});
  /// The proved schedule of so many mini-batches; on() has simulated that of its result's number.
  const ProvedSchedule& schedule(int minibatches) { return held(minibatches).proved; }

 private:
  /// A schedule with what its optimizer keeps.
  struct Held {
    ProvedSchedule proved;
    double optimizer_state = 0;                       ///< bytes per byte of parameters
    std::vector<std::int64_t> optimizer_tables = {};  ///< bytes besides, of each stage
  };

  SourcedCosts costs_on(const Hardware& hardware, std::vector<std::string>& untimed);
  const Held& held(int minibatches);

  Experiment experiment_;
  Experiment settled_;  ///< with its cut, once costs have decided it
  CostSource& costs_;
  Proof proof_;
  /// The rates and the mean time factor that decided a measured balance.
  std::optional<std::pair<DeviceRates, double>> cut_for_;
  std::vector<EdgeMessage> messages_;  ///< of compressed edges, once they are cut
  std::map<int, Held> schedules_;      ///< by their number of mini-batches
};

}  // namespace pipewright
