// SPDX-License-Identifier: Apache-2.0
/// An experiment with its data opened and its schedule validated and compiled, ready to train.
#pragma once

#include <vector>

#include "core/experiment/experiment.h"
#include "core/runtime/program.h"
#include "core/runtime/team.h"
#include "core/stage/stage.h"
#include "core/training/drain_points.h"
#include "core/training/loader.h"

namespace pipewright {

struct Plan {
  const Experiment* experiment = nullptr;
  std::vector<std::int64_t> train, test;  ///< indices into Split::Train, and into `test_split`
  Split test_split = Split::Test;
  std::vector<std::int64_t> lengths;  ///< lengths of training samples, for loader.bucket
  int minibatches = 0;                ///< mini-batches of an epoch
  DrainPoints drains;
  Program training;  ///< up to the first drain point, the longest segment
  Program evaluation;
  std::vector<int> auxiliary;
  std::vector<at::Device> devices;  ///< device of each worker

  // assembly.cpp has what makes loaders, stages, edges and exchanges of a plan.

  /// Loader of the epochs [first_epoch, first_epoch + count), from mini-batch `first_minibatch` of
  /// the first one on.
  Loader training_loader(int first_epoch, int count, int first_minibatch = 0) const;
  Loader evaluation_loader() const;
  /// Initialised stages, indexed [replica · N + stage]; null if another process of the team holds
  /// the worker.
  std::vector<std::unique_ptr<Stage>> stages(const Team& team = Team()) const;
  /// Codecs at the ends of the stages' edges, indexed as the stages; empty without compression.
  std::vector<std::unique_ptr<EdgeEnds>> edges(const Team& team = Team()) const;
  /// Gradient compression, indexed as the stages; empty if gradients are summed uncompressed.
  std::vector<std::unique_ptr<GradientExchange>> exchanges(const Team& team = Team()) const;
  /// Layers of each stage. head_of() is the auxiliary head of a stage, or null.
  std::vector<std::vector<LayerPtr>> stage_layers() const;
  LayerPtr head_of(int stage) const;
};

/// The proved schedule of a part of the experiment's training that begins after `first`
/// mini-batches. It has a loop if it is long, unless a trace of all actions is asked for. Throws
/// Error{Schedule}, and Error{Data} if it does not fit into memory.
ProvedSchedule proved_schedule(const Experiment& experiment, std::int64_t minibatches, int first);

/// Opens the experiment's data set and compiles the schedules. The experiment must outlive the
/// plan, and its cut must be settled. Throws Error{Experiment}, Error{Data} or Error{Schedule}.
Plan make_plan(Experiment& experiment);

/// The two halves of make_plan(). Between them an open data set may be moved in from another
/// experiment with the same one.
void open_data(Experiment& experiment);
Plan plan_open_data(Experiment& experiment);

}  // namespace pipewright
