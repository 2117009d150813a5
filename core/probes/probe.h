// SPDX-License-Identifier: Apache-2.0
/// Probes measure, beside a training and without changing a bit of it, what its scheme does to
/// weights and gradients. A probe holds settings; what it keeps at one stage is a StageProbe.
///
/// A probe measures the mini-batches whose number, counted from 0 at the beginning of the training,
/// is a multiple of `every`: of their passes those of micro-batch 0 and replica 0. Each result is a
/// row of probes.csv.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/registry.h"
#include "core/base/stamp.h"
#include "core/config/options.h"
#include "core/probes/measures.h"
#include "core/runtime/observer.h"

namespace pipewright {

inline constexpr int kWholeModel = -1;  ///< in place of a stage

/// Takes results of one mini-batch, whose number is counted from the beginning of the training, and
/// of one stage.
class Finding {
 public:
  using Take = std::function<void(std::int64_t minibatch, int stage, std::string_view quantity,
                                  double value)>;
  /// `take` must outlive this and all made from it.
  Finding(const Take& take, std::int64_t minibatch, int stage)
      : take_(&take), minibatch_(minibatch), stage_(stage) {}

  void operator()(std::string_view quantity, double value) const {
    (*take_)(minibatch_, stage_, quantity, value);
  }
  std::int64_t minibatch() const { return minibatch_; }
  /// For results of another mini-batch, or of the whole model.
  Finding of(std::int64_t minibatch) const { return {*take_, minibatch, stage_}; }
  Finding of_whole_model() const { return {*take_, minibatch_, kWholeModel}; }

 private:
  const Take* take_;
  std::int64_t minibatch_;
  int stage_;
};

/// Takes one result of a stage, or of the whole model.
using StageFinding = std::function<void(int stage, std::string_view quantity, double value)>;

struct ModelInstant;

/// What a probe may ask about the training before it begins.
struct ProbedTraining {
  std::string scheme;  ///< its name
  int stages = 1;
  int microbatches = 1;
  bool serial = true;         ///< pipeline.execution
  bool compresses = false;    ///< some edge has a codec
  bool predicts = false;      ///< the scheme asks for predictions
  bool local_losses = false;  ///< some stages before the last one have losses
  int gradient_delay = 0;     ///< Schedule::gradient_delay
};

/// One stage of it.
struct ProbedStage {
  int stage = 0;
  int microbatches = 1;
  /// Updates between the version that the stage's forwards read and the one that their gradient is
  /// applied to, as delay_of() of core/stability has it; only if some probe needs_delays().
  int delay = 0;
  bool extrapolates = false;  ///< some passes have weights extrapolated back to an earlier version
};

/// What a probe keeps at one stage, in replica 0. The thread of the stage's worker uses it. Passes
/// are those of mini-batches that are measured, of micro-batch 0, or of all if it says so.
class StageProbe {
 public:
  virtual ~StageProbe() = default;

  /// Whether it wants the passes of all micro-batches.
  virtual bool all_microbatches() const { return false; }
  /// Whether it wants the gradients that a pass adds, in ended().
  virtual bool wants_gradients() const { return false; }

  /// A pass begins, with its weights installed.
  virtual void began(const Instruction& /*pass*/, Stage& /*stage*/) {}
  /// A backward is about to run; began() has been called.
  virtual void backward(const Observer::Backward& /*about_to_run*/) {}
  /// What a pass has added to the gradients of a mini-batch; no gradients: nothing.
  struct Added {
    Gradients gradients;
    Observer::Weighting weighting;
  };
  virtual void ended(const Instruction& /*pass*/, Stage& /*stage*/, const Added& /*added*/,
                     const Finding& /*found*/) {}

  /// An update of any mini-batch. `measured`: it is the first to apply the gradient of one that is
  /// measured.
  struct Update {
    const Instruction& instruction;
    Stage& stage;
    bool measured = false;
  };
  virtual void updates(const Update& /*about_to_run*/, const Finding& /*found*/) {}
  virtual void updated(const Update& /*update*/, const Finding& /*found*/) {}

  /// A message from another stage: its floating-point tensors as they were sent, and as decoded.
  virtual void compared(const Action& /*pass*/, const Tensors& /*sent*/, const Tensors& /*arrived*/,
                        const Finding& /*found*/) {}

  /// The pipeline has been drained; versions and mini-batches of the schedule begin at 0 again.
  virtual void drained() {}
};

class Probe {
 public:
  explicit Probe(Options& options)
      : every_(options.integer("every", 50, "Mini-batches from one measurement to the next.",
                               {1, 1e9})) {}
  virtual ~Probe() = default;

  std::int64_t every() const { return every_; }
  /// The quantities that it writes, and what each is.
  struct Quantity {
    std::string_view name, meaning;
  };
  virtual std::vector<Quantity> quantities() const = 0;
  /// Why it cannot measure this training, as in "needs a scheme that predicts weights; …"; "": it
  /// can.
  virtual std::string refusal(const ProbedTraining& training) const {
    static_cast<void>(training);
    return {};
  }
  /// Whether at() needs ProbedStage::delay.
  virtual bool needs_delays() const { return false; }
  /// Whether it wants messages compared with what was sent.
  virtual bool compares() const { return false; }
  /// What it keeps at a stage; null: it measures nothing there.
  virtual std::unique_ptr<StageProbe> at(const ProbedStage& stage) const = 0;
  /// What it keeps at all stages, which may share something where the training is serial.
  virtual std::vector<std::unique_ptr<StageProbe>> at_all(
      const std::vector<ProbedStage>& stages) const {
    std::vector<std::unique_ptr<StageProbe>> all;
    for (const ProbedStage& stage : stages) all.push_back(at(stage));
    return all;
  }

  /// If positive, it measures the whole model: process 0 calls measure_whole() with so many
  /// training samples and the weights that each stage had directly after the first update that
  /// applied the gradient of a measured mini-batch. They are copied then, and measured where the
  /// pipeline is drained next.
  virtual std::int64_t whole_samples() const { return 0; }
  virtual void measure_whole(const ModelInstant& /*model*/, const StageFinding& /*found*/) const {}
  /// How many tensors as large as all parameters of the model measure_whole() holds at once, at
  /// least. `divided`: the optimizer divides steps.
  virtual int whole_copies(bool divided) const {
    static_cast<void>(divided);
    return 0;
  }
  /// What such a measurement of a model of so many stages takes at most, in words.
  virtual std::string effort(int /*stages*/) const { return {}; }
  /// Throws what measure_whole() would throw for the model's layers, with fewer samples, in less
  /// time.
  virtual void try_on(const ModelInstant& /*model*/) const {}

 private:
  std::int64_t every_;
};

}  // namespace pipewright

#define PIPEWRIGHT_PROBE(name, Type, summary)  \
  PIPEWRIGHT_STAMP(probe, TORCH_VERSION, name) \
  PIPEWRIGHT_REGISTER(::pipewright::Probe, name, Type, summary)
