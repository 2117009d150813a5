/// A schedule for eyes: terminal grid, tables, SVG, CSV, Chrome trace. Time is in slots (slots.h).
/// render_text draws whatever it is given; the others want a schedule that validate() accepts, and
/// throw Error{Schedule} where a pass asks for weights that do not exist.
#pragma once

#include <string>

#include "core/schedule/dependencies.h"
#include "core/schedule/schedule.h"
#include "core/schedule/slots.h"
#include "core/simulation/span.h"

namespace pipewright {

struct RenderOptions {
  int width = 0;         ///< most columns of text, then the grid goes on below; 0 = unlimited
  int minibatches = 12;  ///< stop when so many mini-batches are done; 0 = draw all
  bool color = false;    ///< ANSI colours
  const ActionPlace* culprit = nullptr;  ///< marked ▶…◀, and the part around it is drawn
};

/// One line per worker, one cell per slot: F3 forward of mini-batch 3, B3 backward, b3 a relay or
/// the input's half of a backward, W3 the weights' half, H3 head (F3.1: micro-batch 1; 2F3: stage
/// 2, where a worker has several); `|` an update, `.` idle. Actions that can never start stand at
/// the end, under `?`. Never throws.
std::string render_text(const Schedule& schedule, const RenderOptions& options = {});

/// Per stage: D, staleness, copies held, and the versions that the passes of the first mini-batches
/// read: `2→5(+3)` is version 2 predicted 3 steps ahead; `0/1` when micro-batches differ.
std::string render_versions(const Schedule& schedule, int minibatches = 8);

/// Stand-alone SVG of the grid, until so many mini-batches are done (0 = all).
std::string render_svg(const Schedule& schedule, const std::string& title, int minibatches = 12);

/// "The weights used by mini-batch m" (counted from 0), as in SpecTrain's figures: per stage, the
/// version its forward and backward start from, the steps predicted, the version aimed at, and
/// where the gradient lands.
std::string render_weights_svg(const Schedule& schedule, int minibatch, const std::string& title);

/// worker,index,kind,stage,replica,minibatch,microbatch,loss,version,ahead,start,slots
/// One line per action; microbatch, loss, version and ahead are empty where an action has none.
std::string render_csv(const Schedule& schedule);

/// One mini-batch of one replica as torch.distributed.pipelining writes schedules: a row per
/// worker, a cell per pass: 2F0, 2B0, 2I0, 2W0 (stage, operation, micro-batch), without idle cells.
/// Throws Error{Schedule} where it is not synchronous or learns from auxiliary losses.
std::string render_pytorch_csv(const Schedule& schedule);

/// Chrome trace events (chrome://tracing, Perfetto): 1 slot = 1 ms, one thread per worker, an
/// arrow for each message between workers.
std::string render_trace(const Schedule& schedule);
/// The same with measured times, parallel to Schedule::workers.
std::string render_trace(const Schedule& schedule, const std::vector<std::vector<Span>>& spans);

}  // namespace pipewright
