// SPDX-License-Identifier: Apache-2.0
// What each scheme does when, and with which weights; of a traced run what was planned above what
// was measured.
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/drawing/render.h"
#include "core/drawing/render_simulation.h"
#include "core/page/sections.h"
#include "core/traces/measured_times.h"

namespace pipewright {
namespace {

constexpr int kDrawnMinibatches = 8;
constexpr std::size_t kMostOpen = 4;                // schedules that are open at first
constexpr std::size_t kMostDrawnBytes = 2'500'000;  // of all drawings together

std::string drawing(const std::string& svg, const std::string& name) {
  return concat("<div class=\"drawing\" tabindex=\"0\" role=\"group\" aria-label=\"",
                html_text(name, 200), "\">", svg, "</div>\n");
}

/// The time at which the drawn mini-batches are done, in the slower of both.
double drawn_until(const Simulation& plan, const MeasuredTrace& trace) {
  const auto shown = std::min<std::size_t>(kDrawnMinibatches, plan.minibatch_ends.size());
  double until = shown == 0 ? plan.makespan : plan.minibatch_ends[shown - 1];
  for (std::size_t w = 0; w < trace.spans.size(); ++w)
    for (std::size_t i = 0; i < trace.spans[w].size(); ++i)
      if (trace.proved.schedule.workers[w][i].minibatch < kDrawnMinibatches)
        until = std::max(until, trace.spans[w][i].end);
  return until;
}

/// Whether the schedule has the very actions of the trace, whatever their weights.
bool is_that_of(const MeasuredTrace& trace, const Schedule& schedule) {
  const auto same = [](const Action& a, const Action& b) {
    return a.kind == b.kind && a.stage == b.stage && a.replica == b.replica &&
           a.minibatch == b.minibatch && a.microbatch == b.microbatch;
  };
  return std::ranges::equal(
      trace.proved.schedule.workers, schedule.workers,
      [&](const auto& a, const auto& b) { return std::ranges::equal(a, b, same); });
}

std::string traced(const ReportSchedule& each) {
  const MeasuredTrace& trace = *each.trace;
  const Simulation plan = planned(trace.proved, trace.spans);
  const MeasuredTimes times = measured_times(trace.proved, trace.spans);
  const auto idle = [](double bubble) {
    return concat("; idle ", std::lround(100 * bubble), " %");
  };
  const std::vector<TimelinePart> parts{
      {concat("planned, with the medians of its own times and links that take none: ",
              time_text(plan.makespan), idle(plan.bubble)),
       plan.spans},
      {concat("measured: ", time_text(times.makespan),
              trace.in_turns ? std::string("; the workers took turns") : idle(times.bubble)),
       trace.spans}};
  const bool known = each.traced_schedule && is_that_of(trace, each.traced_schedule->schedule);
  return drawing(render_timelines_svg(trace.proved.schedule, parts,
                                      concat("traced: ", each.traced_run), drawn_until(plan, trace),
                                      known ? &each.traced_schedule->versions : nullptr),
                 concat(each.title, ", planned above measured"));
}

/// The drawings of a schedule, or why there are none.
std::string drawn(const ReportSchedule& each) {
  if (!each.why_not.empty())
    return concat("<p class=\"quiet\">Not drawn: ", html_text(each.why_not), "</p>\n");
  try {
    std::string text = drawing(render_svg(*each.proved, each.title, kDrawnMinibatches),
                               concat(each.title, ", in slots"));
    if (each.trace) text += traced(each);
    return text;
  } catch (const Error& error) {
    return concat("<p class=\"quiet\">Not drawn: ", html_text(error.what()), "</p>\n");
  }
}

}  // namespace

PageSection schedules_section(const Report& report) {
  PageSection section{.id = "schedules", .title = "Schedules"};
  if (report.schedules.empty()) return section;
  section.body =
      "<p class=\"quiet\">Each row is a worker, each box a pass; w2 in a box, or pointing at it, "
      "says which version of the weights it reads. With the keyboard: arrows go from box to box, + "
      "and − zoom.</p>\n";
  std::size_t left_out = 0;
  for (const ReportSchedule& each : report.schedules) {
    if (section.body.size() > kMostDrawnBytes) {
      ++left_out;
      continue;
    }
    const std::string runs = concat(each.title, " (", counted(each.runs.size(), "run"), ")");
    const std::string command =
        each.command.empty()
            ? std::string()
            : concat("<p class=\"quiet\"><code>", html_text(each.command), "</code></p>\n");
    const bool few = report.schedules.size() <= kMostOpen;
    section.body +=
        html_details(runs, drawn(each) + command, few || &each == &report.schedules.front());
  }
  if (left_out > 0)
    section.body += concat("<p>", counted(left_out, "schedule"), left_out == 1 ? " is" : " are",
                           " not drawn, to keep the page small; <code>pipewright schedule</code> "
                           "draws them.</p>\n");
  return section;
}

}  // namespace pipewright
