// SPDX-License-Identifier: Apache-2.0
/// Drawings of a schedule: terminal grid, tables, SVG, CSV, Chrome trace. Time is in slots
/// (slots.h). render_text draws any schedule, the others one that has been proved.
#pragma once

#include <string>

#include "core/schedule/prove.h"
#include "core/schedule/schedule.h"
#include "core/schedule/slots.h"
#include "core/simulation/span.h"

namespace pipewright {

struct RenderOptions {
  int width = 0;         ///< most columns; the grid then goes on below; 0: unlimited
  int minibatches = 12;  ///< draw until so many mini-batches are done; 0: all
  bool color = false;    ///< use ANSI colours
  const ActionPlace* culprit = nullptr;  ///< drawn with its surroundings, marked ▶…◀
};

/// The grid: one line per worker, one cell per slot. F3 is the forward of mini-batch 3, B3 its
/// backward, b3 a relay or the input-only half of a backward, W3 the weight-only half, H3 the head
/// (F3.1: micro-batch 1; 2F3: stage 2, if a worker has several); `|` is an update, `.` an idle
/// slot. Actions that can never start are at the end, under `?`. Throws Error{Data} if the drawing
/// does not fit into memory, and for no schedule otherwise.
std::string render_text(const Schedule& schedule, const RenderOptions& options = {});

/// A table with one row per stage: D, staleness, copies held, and the versions that the passes of
/// the first mini-batches read. `2→5(+3)` is version 2 predicted 3 steps ahead; `0/1` means that
/// micro-batches differ.
std::string render_versions(const ProvedSchedule& proved, int minibatches = 8);

/// A stand-alone SVG of the grid, until so many mini-batches are done (0: all).
std::string render_svg(const ProvedSchedule& proved, const std::string& title,
                       int minibatches = 12);

/// An SVG of "the weights used by mini-batch m" (counted from 0), as in SpecTrain's figures: per
/// stage, the version that its forward and backward start from, the steps predicted, the version
/// aimed at, and the version that the gradient is applied to.
std::string render_weights_svg(const ProvedSchedule& proved, int minibatch,
                               const std::string& title);

/// A CSV text with the columns
/// worker,index,kind,stage,replica,minibatch,microbatch,loss,version,ahead,start,slots,weights,scale
/// and one line per action; microbatch, loss, version, ahead and weights are empty if an action has
/// none. read_action_list() reads it again.
std::string render_csv(const ProvedSchedule& proved);

/// One mini-batch of one replica in the CSV format of torch.distributed.pipelining: a row per
/// worker, a cell per pass: 2F0, 2B0, 2I0, 2W0 (stage, operation, micro-batch), without idle cells.
/// Throws Error{Schedule} if the schedule is not synchronous or learns from auxiliary losses.
std::string render_pytorch_csv(const ProvedSchedule& proved);

/// Chrome trace events (chrome://tracing, Perfetto): 1 slot = 1 ms, one thread per worker, an
/// arrow for each message between workers.
std::string render_trace(const ProvedSchedule& proved);
/// As above, with simulated times, which are parallel to Schedule::workers.
std::string render_trace(const ProvedSchedule& proved, const std::vector<std::vector<Span>>& spans);
/// As above, with the times of a run to 1 ns. Waits for other workers (category "wait"), codecs and
/// sending are slices of their own. `execution` ("threads") is recorded in the trace.
std::string render_measured_trace(const ProvedSchedule& proved,
                                  const std::vector<std::vector<Span>>& spans,
                                  const std::string& execution);

/// As prove(), but the message of a refusal ends with the grid, in which the culprit is marked.
/// Throws Error{Schedule}.
ProvedSchedule prove_for_eyes(Schedule&& schedule);

}  // namespace pipewright
