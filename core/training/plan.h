// SPDX-License-Identifier: Apache-2.0
/// An experiment with its data opened and its schedule validated and compiled, ready to train.
#pragma once

#include <memory>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/runtime/program.h"
#include "core/runtime/team.h"
#include "core/stage/stage.h"
#include "core/training/drain_points.h"
#include "core/training/loader.h"

namespace pipewright {

struct Plan {
  const Experiment* experiment = nullptr;  ///< with a settled layout
  std::shared_ptr<const Dataset> dataset;  ///< open
  std::vector<std::int64_t> train, test;   ///< indices into Split::Train, and into `test_split`
  Split test_split = Split::Test;
  std::vector<std::int64_t> lengths;  ///< lengths of training samples, for loader.bucket
  int minibatches = 0;                ///< mini-batches of an epoch
  DrainPoints drains;
  Program training;  ///< up to the first drain point, the longest segment
  Program evaluation;
  std::vector<int> auxiliary;
  std::vector<at::Device> devices;  ///< device of each worker

  /// The learning rate of a mini-batch of the training, as Experiment::learning_rate() has it.
  double learning_rate(std::int64_t step) const {
    return experiment->learning_rate(step, minibatches, drains.minibatches);
  }

  /// Samples of the first so many mini-batches of the training.
  std::int64_t samples_in(std::int64_t count) const;

  /// Remarks for the user on how it is trained: where it drains, and what disturbs it.
  std::vector<std::string> remarks() const;

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
  /// The auxiliary head of a stage, or null.
  LayerPtr head_of(int stage) const;
};

/// The proved schedule of a part of the experiment's training that begins after `first`
/// mini-batches. It has a loop if it is long, unless a trace of all actions is asked for. Throws
/// Error{Schedule}, and Error{Data} if it does not fit into memory. `waiting` is Schedule::waiting.
ProvedSchedule proved_schedule(const Experiment& experiment, std::int64_t minibatches, int first,
                               const std::vector<std::vector<int>>& waiting = {});

/// What the experiment's data set gets to know of it.
DatasetRequest data_request(const Experiment& experiment);

/// The experiment's data set, open. Throws Error{Data}.
std::shared_ptr<const Dataset> open_data(const Experiment& experiment);

/// Compiles the schedules for that data, by default the experiment's own. The experiment must
/// outlive the plan, and its layout must be settled. Throws Error{Experiment}, Error{Data} or
/// Error{Schedule}.
Plan make_plan(const Experiment& experiment, std::shared_ptr<const Dataset> dataset = nullptr);

}  // namespace pipewright
