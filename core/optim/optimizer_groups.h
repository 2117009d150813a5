// SPDX-License-Identifier: Apache-2.0
/// Optimizers by part of a model. Each group steps and predicts its parameters by its own rule, at
/// its own learning rate times the common factor that OptimizerStep::lr then is. Every parameter is
/// a stage of its own for its optimizer, with flat tensors that begin where the parameter does.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/optim/optimizer.h"

namespace pipewright {

class OptimizerGroups final : public Optimizer {
 public:
  explicit OptimizerGroups(std::vector<OptimizerGroup> groups)
      : Optimizer(1), groups_(std::move(groups)) {}

  std::span<const OptimizerGroup> groups() const override { return groups_; }
  std::vector<std::string> slot_names(bool) const override { return {}; }
  std::vector<StateTable> tables(bool predicts) const override;
  std::unique_ptr<Optimizer> of_stage(int delay, int stages) const override;
  bool predicts_by(PredictionRule::Kind kind) const override;
  std::string remark() const override;
  void step(const OptimizerStep& step) const override;
  void predict(const Prediction& prediction, const FlatRange& range) const override;

 private:
  std::vector<OptimizerGroup> groups_;
};

/// The group that has the parameter; null: none has.
const OptimizerGroup* group_of(std::span<const OptimizerGroup> groups, std::string_view parameter);

/// The optimizers that one consists of, as groups; itself as "optimizer" if it has none.
std::vector<OptimizerGroup> members_of(const std::shared_ptr<const Optimizer>& optimizer);

/// OptimizerState::parts of a state that has all its tensors.
std::vector<PartState> parts_of(const Optimizer& optimizer, const FlatLayout& layout,
                                const OptimizerState& state, bool predicts);

/// What predict() and step_and_predict() do for a state of parts, on the CPU.
void predict_parts(const Prediction& prediction);
void step_and_predict_parts(const OptimizerStep& step, const Prediction& prediction);

}  // namespace pipewright
