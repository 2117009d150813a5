// SPDX-License-Identifier: Apache-2.0
/// The tags under which TensorBoard shows what a run has measured. A tag belongs to one kind of
/// step: epochs, counted from 0 as in epochs.csv, or mini-batches, counted from 0 over all epochs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

/// The tag of a column of epochs.csv: "loss/train", "accuracy/test", "lr". Its steps are epochs.
std::string epoch_tag(std::string_view column);
/// The tag of a column of steps.csv: "loss_per_step/train"; "loss_per_step/stage_2" for the
/// auxiliary loss of stage 2 (column loss_2); "lr_per_step". Its steps are mini-batches.
std::string step_tag(std::string_view column);
/// The tag of a column "test_…" of evaluations.csv: "loss_per_step/test". Its steps are
/// mini-batches.
std::string evaluation_tag(std::string_view column);
/// The tag of what a probe measures: "probe.norms/gradient/stage_0", without a stage for the whole
/// model. Its steps are mini-batches.
std::string probe_tag(std::string_view probe, std::string_view quantity, std::optional<int> stage);

/// Whether the steps of a tag are mini-batches, not epochs.
bool is_per_minibatch(std::string_view tag);

}  // namespace pipewright
