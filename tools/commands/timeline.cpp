// SPDX-License-Identifier: Apache-2.0
// `pipewright timeline`: what a measured run did with its time, beside what was planned.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/drawing/render_simulation.h"
#include "core/system/terminal.h"
#include "core/traces/measured_times.h"
#include "core/traces/trace_file.h"
#include "tools/command.h"
#include "tools/results.h"

namespace pipewright {
namespace {

std::string idle_share(double bubble) {
  return concat("; idle ", std::lround(100 * bubble), " %");
}

/// Idle times in the colours of what is mostly to blame.
std::vector<TimelineMark> marks_of(const MeasuredTrace& trace, MessagePath messages) {
  if (trace.in_turns) return {};
  constexpr std::array<const char*, kBlames.size()> kColors{"#5b6b82", "#c8372d", "#b9c2cf",
                                                            "#8a5bc7", "#c9a227"};
  std::vector<TimelineMark> marks;
  for (const Idle& idle : idle_times(trace.proved, trace.spans)) {
    const std::string blame = blame_name(idle.blame(), messages);
    marks.push_back({static_cast<std::size_t>(idle.worker), idle.begin, idle.end,
                     kColors[static_cast<std::size_t>(idle.blame())], concat("idle: ", blame),
                     concat("idle for ", time_text(idle.length()), ", mostly: ", blame)});
  }
  return marks;
}

/// Planned above measured.
std::string picture(const MeasuredTrace& trace, MessagePath messages, const Simulation& plan,
                    const MeasuredTimes& times, const std::string& title) {
  return render_timelines_svg(
      trace.proved.schedule,
      {{concat("planned, with the medians of its own times and links that take none: ",
               time_text(plan.makespan), idle_share(plan.bubble)),
        plan.spans,
        {}},
       {concat("measured: ", time_text(times.makespan),
               trace.in_turns ? std::string("; the workers took turns") : idle_share(times.bubble)),
        trace.spans, marks_of(trace, messages)}},
      title, std::max(plan.makespan, times.makespan));
}

Value idle_value(const Idle& idle, MessagePath messages) {
  Value value = Value::mapping();
  value.at_or_add("worker") = Value::of(idle.worker);
  value.at_or_add("begin") = Value::of(idle.begin);
  value.at_or_add("end") = Value::of(idle.end);
  if (idle.sender >= 0) value.at_or_add("sender") = Value::of(idle.sender);
  value.at_or_add("blame") = Value::of(blame_name(idle.blame(), messages));
  for (const Blame blame : kBlames)
    value.at_or_add(blame_name(blame, messages)) =
        Value::of(idle.parts[static_cast<std::size_t>(blame)]);
  return value;
}

Value figures(const MeasuredTrace& trace, MessagePath messages, const Simulation& plan,
              const MeasuredTimes& times) {
  Value value = Value::mapping();
  value.at_or_add("planned") = Value::of(plan.makespan);
  value.at_or_add("planned_bubble") = Value::of(plan.bubble);
  value.at_or_add("makespan") = Value::of(times.makespan);
  if (trace.in_turns) return value;
  value.at_or_add("bubble") = Value::of(times.bubble);
  Value& workers = value.at_or_add("workers") = Value::sequence();
  for (std::size_t w = 0; w < times.workers.size(); ++w) {
    const WorkerTime& of = times.workers[w];
    Value& worker = workers.items.emplace_back(Value::mapping());
    worker.at_or_add("worker") = Value::of(static_cast<std::int64_t>(w));
    worker.at_or_add("busy") = Value::of(of.busy);
    worker.at_or_add("sending") = Value::of(of.sending);
    worker.at_or_add("waiting") = Value::of(of.waiting);
    worker.at_or_add("other") = Value::of(of.other);
    worker.at_or_add("coding") = Value::of(of.coding);
    if (of.longest_for >= 0) worker.at_or_add("longest_for") = Value::of(of.longest_for);
  }
  Value& idle = value.at_or_add("idle") = Value::sequence();
  for (const Idle& each : idle_times(trace.proved, trace.spans))
    idle.items.push_back(idle_value(each, messages));
  return value;
}

/// A field of a file of the run folder; Null if it cannot be read.
Value recorded(const std::filesystem::path& file, const char* path) {
  try {
    const Value document = load_yaml(file);  // JSON is YAML
    const Value* const field = document.find_path(path);
    return field == nullptr ? Value() : *field;
  } catch (const Error&) {
    return {};
  }
}

/// Whether all workers were threads that shared the processor of one machine.
bool shared_a_processor(const MeasuredTrace& trace, const std::filesystem::path& folder) {
  const Value device = recorded(folder / "experiment.yaml", "pipeline.device");
  const auto is_other = [](const Value& of) {
    return of.is(Value::Kind::Text) && of.text != "cpu";
  };
  return trace.in_threads && !is_other(device) && std::ranges::none_of(device.items, is_other);
}

int run_timeline(const std::vector<std::string>& arguments) {
  CommandLine line(
      kTimeline,
      "Says what the workers of a run did with their time: reads the trace.json that a run with "
      "output.trace: true has left in its folder, prints how long each worker was busy and for "
      "whom it waited, and blames the longest idle times on link (a message was on its way; "
      "between "
      "threads, which have no link, it is called handover), codec "
      "(its sender encoded or decoded), straggler (its sender computed longer than the median of "
      "such actions), order (its sender had that action and others to do first) or other (its "
      "sender "
      "ran nothing and waited for nothing that is known). The clock begins with the first action. "
      "It draws the "
      "same schedule as planned, simulated with the medians of the run's own times, above what was "
      "measured.");
  line.positional("DIR", "the folder of a run, or of a sweep with --where", 1, 1);
  line.output("svg", "FILE", "where the picture goes; default: timeline.svg in the run's folder");
  line.where();
  line.option("longest", "N", "how many idle times are listed", "10");
  line.output("json", "FILE", "write all figures as JSON, every idle time with its parts included");
  if (!line.parse(arguments)) return 0;
  const int longest = line.integer("longest");
  if (longest < 1)
    throw Error(ErrorKind::Experiment, concat("--longest is ", longest, "; expected at least 1"));
  const std::filesystem::path folder = run_in(line.text("DIR"), line);
  const MeasuredTrace trace = read_trace(folder / "trace.json");
  const Simulation plan = planned(trace.proved, trace.spans);
  const MeasuredTimes times = measured_times(trace.proved, trace.spans);
  print("planned  %s%s\n%s", time_text(plan.makespan).c_str(), idle_share(plan.bubble).c_str(),
        measured_times_text(trace.proved, trace.spans, trace.in_turns).c_str());
  const bool shared = shared_a_processor(trace, folder);
  const MessagePath messages = shared ? MessagePath::HandedOver : MessagePath::OverLinks;
  if (!trace.in_turns)
    print("\n%s", idle_text(trace.proved, trace.spans, longest, messages).c_str());
  if (shared)
    print("%s",
          shared_cores_remark(trace.spans.size(), recorded(folder / "run.json", "cores").integer)
              .c_str());
  print(
      "\n%s",
      timeline_answer(trace.proved, trace.spans, trace.in_turns, messages, plan.makespan).c_str());
  const std::string title = std::filesystem::weakly_canonical(folder).filename().string();
  write_output(
      line.given("svg") ? std::filesystem::path(line.text("svg")) : folder / "timeline.svg",
      picture(trace, messages, plan, times, title));
  if (line.given("json"))
    write_output(line.text("json"), to_json(figures(trace, messages, plan, times)) + "\n");
  return 0;
}

}  // namespace

const Command kTimeline{"timeline", "timeline DIR [--where S] [--svg F] [--longest N] [--json F]",
                        "what a measured run waited for, beside its plan", run_timeline};

}  // namespace pipewright
