// SPDX-License-Identifier: Apache-2.0
/// Event files of runs, made from what their folders hold: a folder for each run, so that
/// `tensorboard --logdir` shows the runs side by side under their names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/exports/metric_rows.h"

namespace pipewright {

/// The name of every event file of ours. TensorBoard takes files with ".tfevents." in their names.
inline constexpr const char* kEventFile = "events.out.tfevents.pipewright";

/// The event file of a run. Its times are when things happened in the run: `started` in run.json
/// and the seconds of its epochs. The numbers of traffic.csv, which are of the whole training, are
/// no curves and are left out. So are probes after the first epoch, if there is no steps.csv that
/// says how many mini-batches an epoch has; a remark is then appended to `remarks`. Throws
/// Error{Data}.
std::string event_file_of(const RunRecord& record, std::vector<std::string>& remarks);

/// Writes an event file for each run to the folder `out`/<name of the run>. Nothing is written if
/// one of these folders holds an event file of somebody else, is a run's own folder or a link:
/// that is an Error{Data}. Returns remarks for the user.
std::vector<std::string> write_event_files(const std::filesystem::path& out,
                                           const std::vector<ExportedRun>& runs);

// The tags under which TensorBoard shows what a run has measured. A tag belongs to one kind of
// step: epochs, counted from 0 as in epochs.csv, or mini-batches, counted from 0 over all epochs.

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
