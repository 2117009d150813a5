// SPDX-License-Identifier: Apache-2.0
/// The probes of a training at work: calls them for what they measure, and gathers what they find.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/probes/probe.h"
#include "core/schedule/versions.h"
#include "core/stage/stage_probe_access.h"

namespace pipewright {

/// A probe of an experiment, with its registered name.
struct NamedProbe {
  std::string name;
  std::shared_ptr<const Probe> probe;
};

/// One row of probes.csv.
struct ProbeRow {
  std::int64_t minibatch = 0;  ///< from the beginning of the training
  int stage = 0;               ///< −1: the whole model
  int probe = 0;               ///< index into the experiment's probes
  std::string quantity;
  double value = 0;
};

/// What a stage held directly after the first update that applied the gradient of a mini-batch.
struct StageCopy {
  std::int64_t minibatch = 0;  ///< from the beginning of the training
  int stage = 0;
  NamedTensors state, divisors;  ///< of StageProbeAccess
};

/// Sorts rows by mini-batch, stage and probe; those of one measurement keep their order.
void sort_rows(std::vector<ProbeRow>& rows);

/// Observes the stages of replica 0 that this process holds. Results that are not finite are left
/// out.
class Probes final : public Observer {
 public:
  /// `program` says which stages there are and which weights they have; `probes` must outlive this.
  /// `delays` has ProbedStage::delay of each stage, if a probe needs it.
  Probes(const std::vector<NamedProbe>& probes, const Program& program,
         const std::vector<int>& delays = {});

  /// A schedule is about to be executed, whose mini-batch 0 has that number in the training.
  void begin(std::int64_t first_minibatch);
  /// The rows found since the last call.
  std::vector<ProbeRow> take();
  /// The copies for the probes of the whole model that were made since the last call.
  std::vector<StageCopy> take_copies();
  /// Seconds that each probe has taken here so far, and how often it measured.
  struct Cost {
    double seconds = 0;
    std::int64_t measurements = 0;
  };
  std::vector<Cost> costs() const;

  void began(const Instruction& instruction, Stage& stage) override;
  void backward(const Backward& about_to_run) override;
  void ended(const Instruction& instruction, Stage& stage, const Weighting& weighting) override;
  void updates(const Instruction& instruction, Stage& stage) override;
  void updated(const Instruction& instruction, Stage& stage) override;
  bool compares(const Action& pass) const override;
  void compared(const Action& pass, int peer, const Tensors& sent, const Tensors& arrived) override;

 private:
  /// A probe at one stage.
  struct Placed {
    int probe = 0;
    std::int64_t every = 1;
    std::unique_ptr<StageProbe> at;
    Cost cost;
    std::int64_t last = -1;  ///< mini-batch of the last result
  };
  /// All that the thread of a stage's worker uses.
  struct Site {
    std::vector<Placed> probes;
    std::vector<ProbeRow> rows;
    std::vector<StageCopy> copies;
    double copying = 0;  ///< seconds
    Gradients added;     ///< by the pass that runs, if a probe wants them
    int next = 0;        ///< first mini-batch of the schedule that no update has applied
  };
  template <class Call>
  void each(const Action& action, int first, const Call& call);
  template <class Call>
  void each_of_pass(const Action& pass, const Call& call);
  std::int64_t due(std::int64_t every, int first, int last) const;
  void copy(const Action& update, Stage& stage);
  Site* site(const Action& action);

  const std::vector<NamedProbe>& probes_;
  std::vector<Site> sites_;  ///< [stage]
  std::vector<int> whole_;   ///< probes of the whole model
  std::int64_t first_ = 0;
};

}  // namespace pipewright
