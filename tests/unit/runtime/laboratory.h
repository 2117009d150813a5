// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of runtime and experiment: small experiments from YAML, run without a run
/// folder, and layers with side effects.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/training/plan.h"

namespace pipewright::test {

/// An experiment with four linear layers on 48 synthetic samples. `changes` sets dotted keys, as in
/// "{scheme: gpipe, pipeline.stages: 2}".
Value small_document(const std::string& changes = "{}");

/// Changes for four micro-batches of small trainings: linear layers; batch norm and dropout; what
/// sends integers and masks from stage to stage.
inline constexpr const char* kSmallPerceptron = "pipeline.microbatches: 4, dataset.train: 40";
inline constexpr const char* kSmallConvolutions =
    "pipeline.microbatches: 4, dataset.train: 24, "
    "model: {name: cnn, width: 0.125, size: 8, channels: 1, classes: 3}";
inline constexpr const char* kSmallText =
    "pipeline.microbatches: 4, dataset.train: 24, pipeline.balance: layers, "
    "model: {name: roberta, vocabulary: 9, classes: 3, layers: 2, width: 8, heads: 2, "
    "feed_forward: 12, tokens: 6}";

/// An experiment and its plan. The plan is made on first use, so that layers can be replaced
/// before.
class Laboratory {
 public:
  explicit Laboratory(const std::string& changes = "{}");

  Experiment experiment;
  std::shared_ptr<const Dataset> dataset;  ///< if set, the open data of the plan
  Plan& plan();

  using Hook = std::function<void(const Pass& pass)>;
  /// Calls `hook` before each forward of that layer, but for those on the meta device.
  void watch(std::size_t layer, Hook hook);
  /// Multiplies that layer's output by factor(pass).
  void scale(std::size_t layer, std::function<double(const Pass& pass)> factor);

 private:
  std::unique_ptr<Plan> plan_;
};

using Stages = std::vector<std::unique_ptr<Stage>>;

/// Trains one epoch of `plan` in `stages` at learning rate 0.05.
RunResult train(const Plan& plan, const Stages& stages, Execution execution,
                const std::atomic<bool>* stop = nullptr, int epoch = 0, Team* team = nullptr,
                Observer* observer = nullptr);

/// Everything a stage has learned, replica by replica.
std::vector<std::pair<std::string, at::Tensor>> state_of(const Stages& stages);
/// Compares bit for bit. Returns the name of the first difference, or "".
std::string difference(const Stages& a, const Stages& b);
/// max |a − b| over all parameters and buffers, of which both must have the same ones.
double distance(const Stages& a, const Stages& b, std::size_t count);

/// Expects `serial` and `threads` to give the same weights and losses. `what` names the case in
/// messages.
void expect_same_bits(Laboratory& laboratory, const std::string& what);

/// The losses of all sites of all mini-batches in one list, to be compared with ==.
std::vector<double> flat_losses(const RunResult& result);

}  // namespace pipewright::test
