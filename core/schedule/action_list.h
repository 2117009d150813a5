// SPDX-License-Identifier: Apache-2.0
/// A schedule as text, an action a line with the weights that it reads, and back: the CSV files of
/// `schedule --csv` and of the scheme csv_schedule.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.h"

namespace pipewright {

/// The weights of a pass in words, as in "latest", "latest+2", "3-1 lookahead 0.9", "forward": the
/// base (the latest version, that of the pass's forward, or a version by its number), the steps
/// that are predicted beyond it, and the rule of the prediction, unless it is the optimizer's own.
std::string weights_text(const Weights& weights, const std::vector<PredictionRule>& rules);

/// A schedule that was read from a file, and the line of each action.
struct ActionList {
  Schedule schedule;                    ///< its shape has no skips and no link capacity
  std::vector<std::vector<int>> lines;  ///< parallel to Schedule::workers
};

/// Whether the text begins as read_action_list() wants it: with names of columns, worker
/// and kind among them. Then, and only then, may messages quote it.
bool is_action_list(std::string_view text);

/// Reads a CSV text whose first line names columns: worker, kind, stage and minibatch; microbatch,
/// replica, loss, weights, scale and with_next may be left out, or a field may be empty, where the
/// default does (0; 0; the last stage; latest of forwards and heads, forward of backwards; 1; 0).
/// Other columns of `schedule --csv` are ignored, and so are lines with a recomputation that has
/// its forward's weights, which pipeline.recompute decides on. The order of a worker's lines is
/// that of its actions. Which losses a stage learns from, its auxiliary head, and the versions from
/// before the schedule follow from the actions. Throws Error{Data} with the file, line and column
/// of what is wrong; the schedule is not proved.
ActionList read_action_list(std::string_view text, const std::filesystem::path& file);

/// The schedule without the actions of mini-batch `minibatches` and later ones.
Schedule first_minibatches(const Schedule& schedule, int minibatches);

}  // namespace pipewright
