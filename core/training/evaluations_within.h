// SPDX-License-Identifier: Apache-2.0
/// Evaluations while a segment is trained, which drain no pipeline: each stage sets the weights
/// aside that it is about to replace, and the execution pauses once all stages have made them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/interludes.h"
#include "core/training/plan.h"

namespace pipewright {

/// Each process of a training has one. All arguments of the constructor must outlive it.
class EvaluationsWithin final : public Interludes {
 public:
  /// `evaluate` evaluates the weights and buffers that replica 0 of the stages shows, those after
  /// so many mini-batches of the training; collective.
  EvaluationsWithin(const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
                    std::function<void(std::int64_t minibatches)> evaluate);

  /// The interludes of the next segment, which begins after `first` mini-batches and ends after
  /// `end`; null: it has none.
  Interludes* begin(std::int64_t first, std::int64_t end);

  const std::vector<int>& after() const override { return after_; }
  void before(const Action& action, Stage& stage) override;
  void pause(int minibatches) override;

 private:
  /// What a stage has set aside.
  template <class T>
  struct Kept {
    std::size_t next = 0;  ///< first evaluation of the segment that nothing was set aside for
    std::deque<T> values;  ///< of evaluations that are still to come
    int last = 0;          ///< mini-batch of its last action
  };
  struct Site {
    Kept<at::Tensor> weights;
    Kept<std::vector<at::Tensor>> buffers;
  };
  template <class T, class Copy>
  void keep(Kept<T>& kept, const Action& action, const Copy& copy);

  const Plan& plan_;
  const std::vector<std::unique_ptr<Stage>>& stages_;
  std::function<void(std::int64_t)> evaluate_;
  std::int64_t first_ = 0;
  std::vector<int> after_;
  std::size_t done_ = 0;     ///< evaluations of this segment
  std::vector<Site> sites_;  ///< [stage] of replica 0
};

/// Throws Error{Experiment} if there is nothing to evaluate on, or an evaluation within the
/// training could not be that of a training that ends there.
void check_evaluations(const Plan& plan);

}  // namespace pipewright
