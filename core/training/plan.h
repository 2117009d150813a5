/// An experiment with its data opened and its schedule proved: everything short of training.
#pragma once

#include <vector>

#include "core/experiment/experiment.h"
#include "core/runtime/processes/team.h"
#include "core/runtime/program.h"
#include "core/stage/stage.h"
#include "core/training/drain_points.h"
#include "core/training/loader.h"

namespace pipewright {

struct Plan {
  const Experiment* experiment = nullptr;
  std::vector<std::int64_t> train, test;  ///< indices into Split::Train, and into `test_split`
  Split test_split = Split::Test;
  std::vector<std::int64_t> lengths;  ///< of the training split's samples, for loader.bucket
  int minibatches = 0;                ///< of an epoch
  DrainPoints drains;
  Program training;  ///< up to the first drain point: the longest segment there is
  Program evaluation;
  std::vector<int> auxiliary;
  std::vector<at::Device> devices;  ///< of each worker

  /// Mini-batches of the epochs [first, first + count), without the first few of the first one.
  Loader training_loader(int first_epoch, int count, int first_minibatch = 0) const;
  Loader evaluation_loader() const;
  /// One per replica and stage: [replica · N + stage], initialised; null where another process of
  /// the team holds the worker.
  std::vector<std::unique_ptr<Stage>> stages(const Team& team = Team()) const;
  /// The ends of their edges, as the stages; empty where nothing is compressed.
  std::vector<std::unique_ptr<EdgeEnds>> edges(const Team& team = Team()) const;
  /// What they sum over replicas, as the stages; empty where that is the gradients as they are.
  std::vector<std::unique_ptr<GradientExchange>> exchanges(const Team& team = Team()) const;
  /// Layers of each stage, and its head (null without one).
  std::vector<std::vector<LayerPtr>> stage_layers() const;
  LayerPtr head_of(int stage) const;
};

/// Opens the data set (of `experiment`, which outlives the plan and whose cut is settled) and
/// compiles the schedules. Throws
/// Error{Experiment}, Error{Data} or Error{Schedule}.
Plan make_plan(Experiment& experiment);

/// The two halves of it. An open data set may be handed to the next experiment with the same one.
void open_data(Experiment& experiment);
Plan plan_open_data(Experiment& experiment);

/// How many values a tensor at each edge has at most, in training and in evaluation: that of a
/// whole mini-batch, of texts at their longest, of images as large as the larger of the two. Reads
/// a sample of the evaluation. Empty where layers do not compute shapes without values.
EdgeValues most_values(const Plan& plan);

/// Whether the experiment's weights file, if it has one, holds exactly the names and shapes that
/// the layers declare; no tensor is made. Throws Error{Data} listing what is missing, left over or
/// of another shape.
void check_weights(const Plan& plan);

}  // namespace pipewright
