// SPDX-License-Identifier: Apache-2.0
#include "core/traces/measured_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/as_size.h"
#include "core/base/printed.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/base/wording.h"
#include "core/drawing/render_answer.h"
#include "core/drawing/render_labels.h"

namespace pipewright {
namespace {

double end_of(const Spans& spans) {
  double end = 0;
  for (const auto& worker : spans)
    if (!worker.empty()) end = std::max(end, worker.back().end);
  return end;
}

/// Seconds of codecs and of sending.
std::pair<double, double> coding_and_sending(const std::vector<Span>& spans) {
  double coding = 0, sending = 0;
  for (const Span& span : spans) {
    coding += span.decoding + span.encoding;
    sending += span.sending;
  }
  return {coding, sending};
}

/// Seconds in which a worker ran actions.
double running(const std::vector<Span>& spans) {
  double seconds = 0;
  for (const Span& span : spans) seconds += span.end - span.begin;
  return seconds;
}

/// "order 2.10 ms, link 40.0 µs": the parts of an idle time, the largest first.
std::string parts_text(const BlameParts& parts, MessagePath messages) {
  std::vector<Blame> blames(kBlames.begin(), kBlames.end());
  std::ranges::stable_sort(blames, std::greater<>(),
                           [&](Blame blame) { return parts[static_cast<std::size_t>(blame)]; });
  std::vector<std::string> texts;
  for (const Blame blame : blames)
    if (const double seconds = parts[static_cast<std::size_t>(blame)]; seconds > 0)
      texts.push_back(concat(blame_name(blame, messages), " ", time_text(seconds)));
  return join(texts, ", ");
}

std::string turns_text(const Schedule& schedule, const Spans& spans) {
  double busy = 0;
  TextTable table({"worker", "busy"}, {0});
  for (std::size_t w = 0; w < spans.size(); ++w) {
    const double own = running(spans[w]);
    busy += own;
    table.add({std::to_string(w), time_text(own)});
  }
  return concat("measured over ", counted(schedule.shape.minibatches, "mini-batch"), ": ",
                time_text(busy),
                " of computing; execution: serial lets the workers take turns, so that no bubble "
                "can be measured\n\n",
                table.text());
}

/// Costs of stages: the median of what actions of a kind computed, and of their codecs; of a
/// reduction the shortest, whose worker waited for nobody. Links take no time.
std::vector<StageCost> measured_costs(const Schedule& schedule, const Spans& spans) {
  const std::vector<StageMedians> medians = median_seconds(schedule, spans);
  Spans codecs = spans;  // spans that consist of their codecs
  for (auto& worker : codecs)
    for (Span& span : worker) span = {.end = span.decoding + span.encoding};
  const std::vector<StageMedians> coding = median_seconds(schedule, codecs);
  const auto median = [](const StageMedians& times, ActionKind kind) {
    return times[static_cast<std::size_t>(kind)];
  };
  std::vector<StageCost> costs;
  for (std::size_t stage = 0; stage < medians.size(); ++stage) {
    const StageMedians& times = medians[stage];
    StageCost& cost = costs.emplace_back();
    cost.forward = median(times, ActionKind::Forward);
    cost.recompute = median(times, ActionKind::Recompute);
    cost.head = median(times, ActionKind::Head);
    cost.backward = median(times, ActionKind::Backward);
    cost.backward_input = median(times, ActionKind::BackwardInput);
    cost.backward_weight = median(times, ActionKind::BackwardWeight);
    cost.update = median(times, ActionKind::Update);
    cost.coding_forward = median(coding[stage], ActionKind::Forward);
    cost.coding_backward = std::max(median(coding[stage], ActionKind::Backward),
                                    median(coding[stage], ActionKind::BackwardInput));
  }
  std::vector<bool> reduced(costs.size(), false);
  for (std::size_t w = 0; w < spans.size(); ++w)
    for (std::size_t i = 0; i < spans[w].size(); ++i) {
      const Action& action = schedule.workers[w][i];
      if (action.kind != ActionKind::Reduce) continue;
      const double seconds = spans[w][i].end - spans[w][i].begin;
      double& shortest = costs[as_size(action.stage)].coding_reduce;
      shortest = reduced[as_size(action.stage)] ? std::min(shortest, seconds) : seconds;
      reduced[as_size(action.stage)] = true;
    }
  return costs;
}

}  // namespace

MeasuredTimes measured_times(const ProvedSchedule& proved, const Spans& spans) {
  MeasuredTimes times{.makespan = end_of(spans)};
  times.workers.resize(spans.size());
  std::vector<std::map<int, double>> waits(spans.size());
  std::vector<double> waits_within(spans.size());  // an action: a reduction waits in its own
  double waiting = 0;
  for (const Idle& idle : idle_times(proved, spans)) {
    times.workers[as_size(idle.worker)].waiting += idle.length();
    const std::vector<Span>& own = spans[as_size(idle.worker)];
    if (idle.before < own.size() && idle.begin >= own[idle.before].begin)
      waits_within[as_size(idle.worker)] += idle.length();
    waiting += idle.length();
    if (idle.sender >= 0) waits[as_size(idle.worker)][idle.sender] += idle.length();
  }
  for (std::size_t w = 0; w < spans.size(); ++w) {
    WorkerTime& worker = times.workers[w];
    std::tie(worker.coding, worker.sending) = coding_and_sending(spans[w]);
    worker.busy = running(spans[w]) - worker.sending - waits_within[w];
    worker.other = std::max(0.0, times.makespan - worker.busy - worker.sending - worker.waiting);
    for (const auto& [sender, seconds] : waits[w])
      if (seconds > worker.longest_wait) {
        worker.longest_for = sender;
        worker.longest_wait = seconds;
      }
  }
  const double all = times.makespan * static_cast<double>(spans.size());
  times.bubble = all > 0 ? waiting / all : 0;
  return times;
}

std::string measured_times_text(const ProvedSchedule& proved, const Spans& spans, bool in_turns) {
  if (in_turns && spans.size() > 1) return turns_text(proved.schedule, spans);
  const MeasuredTimes times = measured_times(proved, spans);
  const bool coded = std::ranges::any_of(
      times.workers, [](const WorkerTime& worker) { return worker.coding > 0; });
  std::vector<std::string> titles{"worker", "busy", "sends", "waits", "other", "longest for"};
  if (coded) titles.emplace_back("codecs");
  TextTable table(titles, {0, 5});
  for (std::size_t w = 0; w < times.workers.size(); ++w) {
    const WorkerTime& worker = times.workers[w];
    std::vector<std::string> row{
        std::to_string(w),
        percent_of(worker.busy, times.makespan),
        percent_of(worker.sending, times.makespan),
        percent_of(worker.waiting, times.makespan),
        percent_of(worker.other, times.makespan),
        worker.longest_for < 0
            ? "nobody"
            : concat("worker ", worker.longest_for, ", ", time_text(worker.longest_wait))};
    if (coded) row.push_back(percent_of(worker.coding, times.makespan));
    table.add(std::move(row));
  }
  return concat("measured over ", counted(proved.schedule.shape.minibatches, "mini-batch"), ": ",
                time_text(times.makespan), ", bubble ", percent_of(times.bubble, 1), "\n\n",
                table.text());
}

std::string timeline_answer(const ProvedSchedule& proved, const Spans& spans, bool in_turns,
                            MessagePath messages, double planned) {
  if (in_turns && spans.size() > 1)
    return "In short: one thread let the workers take turns, so that nobody waited for another; "
           "`execution: threads` measures waits.\n";
  const MeasuredTimes times = measured_times(proved, spans);
  double busy = 0;
  for (const WorkerTime& worker : times.workers) busy += worker.busy;
  const double all = times.makespan * static_cast<double>(times.workers.size());
  std::string text = concat("In short: workers computed ",
                            std::lround(all > 0 ? 100 * busy / all : 0), " % of their time");
  BlameParts sums{};
  double idle = 0;
  for (const Idle& each : idle_times(proved, spans)) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += each.parts[i];
    idle += each.length();
  }
  if (idle > 0) {
    const auto most = std::ranges::max_element(sums) - sums.begin();
    text += concat("; of the time that they waited, ",
                   std::lround(100 * sums[static_cast<std::size_t>(most)] / idle),
                   " % is to be blamed on ",
                   blame_name(kBlames[static_cast<std::size_t>(most)], messages));
  }
  if (planned > 0)
    text += concat("; the run took ", printed("%.2f", times.makespan / planned),
                   " times as long as planned");
  return text + ".\n";
}

std::string shared_cores_remark(std::size_t workers, std::int64_t cores) {
  if (cores < 1 || workers <= static_cast<std::size_t>(cores)) return {};
  return concat(counted(workers, "worker"), " share ", counted(cores, "core"),
                ": waits are the scheduler's, too\n");
}

std::string idle_text(const ProvedSchedule& proved, const Spans& spans, int most,
                      MessagePath messages) {
  std::vector<Idle> all = idle_times(proved, spans);
  BlameParts sums{};
  for (const Idle& idle : all)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += idle.parts[i];
  std::ranges::stable_sort(all, std::greater<>(), &Idle::length);
  if (all.empty() || all.front().length() <= 0) return "no worker was idle\n";
  const RenderLabels labels(proved.schedule);
  std::string text = concat("idle: ", parts_text(sums, messages), "\n\n");
  TextTable table({"idle", "from", "worker", "with", "waits for", "to blame"}, {2, 3, 4, 5});
  for (std::size_t i = 0; i < std::min(all.size(), as_size(most)); ++i) {
    const Idle& idle = all[i];
    const auto& actions = proved.schedule.workers[as_size(idle.worker)];
    const bool done = idle.before >= actions.size();
    table.add({time_text(idle.length()), time_text(idle.begin), std::to_string(idle.worker),
               done ? "nothing left" : labels.action(actions[idle.before]),
               idle.sender < 0 ? "the others" : concat("worker ", idle.sender),
               parts_text(idle.parts, messages)});
  }
  return text + table.text();
}

Simulation planned(const ProvedSchedule& proved, const Spans& spans) {
  return simulate(proved, measured_costs(proved.schedule, spans),
                  ideal_hardware(proved.schedule.shape.workers()), {.memory = false});
}

}  // namespace pipewright
