/// A schedule for eyes: terminal grid, tables, SVG, CSV, Chrome trace.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/schedule.h"
#include "core/schedule/validate.h"

namespace pipewright {

/// Start of every action in slots, if a forward takes 1 slot, a backward 2, a relay 1, a head 1,
/// updates and reductions 0, transfers 0, and every worker starts an action as soon as it can.
struct SlotTimes {
  std::vector<std::vector<int>> start;  ///< parallel to Schedule::workers
  int makespan = 0;
};
int slots_of(ActionKind kind);
SlotTimes slot_times(const Schedule& schedule);

struct RenderOptions {
  int width = 0;               ///< most columns of text; 0 = unlimited
  int minibatches = 12;        ///< draw at most so many mini-batches; 0 = all
  bool color = false;          ///< ANSI colours
  const ActionPlace* culprit = nullptr;  ///< marked with ▶…◀ (text)
};

/// One line per worker; F as digits, B as letters is the papers' habit: here "F3", "B3" with idle as ".".
std::string render_text(const Schedule& schedule, const RenderOptions& options = {});
/// Per stage: forward and backward staleness, copies held, versions read by each pass of the first
/// mini-batches, whether predicted and how far.
std::string render_versions(const Schedule& schedule, int minibatches = 8);
/// Stand-alone SVG of the grid.
std::string render_svg(const Schedule& schedule, const std::string& title, int minibatches = 12);
/// "The weights used by mini-batch m", as in SpecTrain's figures: per stage, the version its forward
/// and backward start from, the steps predicted, the version aimed at, and where the gradient lands.
std::string render_weights_svg(const Schedule& schedule, int minibatch, const std::string& title);
/// worker,index,kind,stage,replica,minibatch,microbatch,loss,version,ahead,start,slots
std::string render_csv(const Schedule& schedule);
/// Chrome trace events (chrome://tracing, Perfetto): 1 slot = 1 ms, one thread per worker.
std::string render_trace(const Schedule& schedule);

}  // namespace pipewright
