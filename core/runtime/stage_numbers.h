// SPDX-License-Identifier: Apache-2.0
/// Numbers that the stages of each replica give for a mini-batch, and their sums over the stages,
/// in the order of the stages.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/schedule/schedule.h"

namespace pipewright {

/// Used by one thread at a time.
class StageNumbers {
 public:
  explicit StageNumbers(const PipelineShape& shape) : stages_(shape.stages) {}

  void give(const Action& update, double number) {
    Row& row = rows_[{update.minibatch, update.replica}];
    row.numbers.resize(as_size(stages_));
    std::optional<double>& given = row.numbers[as_size(update.stage)];
    PIPEWRIGHT_CHECK(!given, "stage ", update.stage, " has given its number twice");
    given = number;
    ++row.given;
  }
  bool complete(const Action& update) const {
    const auto row = rows_.find({update.minibatch, update.replica});
    return row != rows_.end() && row->second.given == stages_;
  }
  /// The sum; the row is forgotten when every stage has taken it.
  double take(const Action& update) {
    const auto row = rows_.find({update.minibatch, update.replica});
    PIPEWRIGHT_CHECK(complete(update), "a stage has not given its number");
    double sum = 0;
    for (const std::optional<double>& each : row->second.numbers) sum += *each;
    if (++row->second.taken == stages_) rows_.erase(row);
    return sum;
  }

 private:
  struct Row {
    std::vector<std::optional<double>> numbers;  ///< [stage]
    int given = 0, taken = 0;
  };
  int stages_;
  std::map<std::pair<int, int>, Row> rows_;  ///< (mini-batch, replica)
};

}  // namespace pipewright
