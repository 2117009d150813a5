/// What the tests of runtime and experiment share: small experiments from YAML, run outside a run
/// folder, and layers that do something besides computing.
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

/// Four linear layers on 48 made-up samples, with `changes` ("{scheme: gpipe, pipeline.stages: 2}")
/// set over it by dotted key.
Value small_document(const std::string& changes = "{}");

/// An experiment and its plan; the plan is made when first asked for, so layers can be put in
/// before.
class Laboratory {
 public:
  explicit Laboratory(const std::string& changes = "{}");

  Experiment experiment;
  Plan& plan();

  using Hook = std::function<void(const Pass& pass)>;
  /// Calls `hook` before each forward of that layer.
  void watch(std::size_t layer, Hook hook);
  /// Multiplies that layer's output by factor(pass).
  void scale(std::size_t layer, std::function<double(const Pass& pass)> factor);

 private:
  std::unique_ptr<Plan> plan_;
};

using Stages = std::vector<std::unique_ptr<Stage>>;

/// One epoch of `plan` into `stages` at learning rate 0.05.
RunResult train(const Plan& plan, const Stages& stages, Execution execution,
                const std::atomic<bool>* stop = nullptr, int epoch = 0, Team* team = nullptr);

/// Everything a stage has learned, replica by replica.
std::vector<std::pair<std::string, at::Tensor>> state_of(const Stages& stages);
/// Bit for bit; names what differs first, or "".
std::string difference(const Stages& a, const Stages& b);
/// max |a − b| over all parameters and buffers; both have the same ones.
double distance(const Stages& a, const Stages& b, std::size_t count);

/// Expects both executions on this machine to learn the same, with the same losses. `what` says of
/// which case that is.
void expect_same_bits(Laboratory& laboratory, const std::string& what);

/// A loss of every mini-batch's every site, flat: compared with ==.
std::vector<double> flat_losses(const RunResult& result);

}  // namespace pipewright::test
