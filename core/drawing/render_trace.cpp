// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/versions.h"

namespace pipewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsPerSlot = 1e-3;

/// Collects events of the Trace Event Format, one per line.
class Trace {
 public:
  Trace(const Schedule& schedule, const std::vector<std::vector<Span>>& spans)
      : schedule_(schedule),
        labels_(schedule),
        versions_(resolve_versions(schedule)),
        spans_(spans),
        index_(schedule) {}

  std::string json() {
    for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
      name_worker(worker);
      for (std::size_t i = 0; i < schedule_.workers[worker].size(); ++i) {
        add_action(worker, i);
        add_message(worker, i);
      }
    }
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + join(events_, ",\n") + "\n]}\n";
  }

 private:
  static std::int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }
  std::int64_t begin_of(std::size_t worker, std::size_t position) const {
    return microseconds(spans_[worker][position].begin);
  }
  std::int64_t length_of(std::size_t worker, std::size_t position) const {
    return microseconds(spans_[worker][position].end) - begin_of(worker, position);
  }
  void add(const Json& event) { events_.push_back(event.dump()); }

  void name_worker(std::size_t worker) {
    const std::string stages = labels_.stages(worker);
    const std::string name = concat(labels_.worker(worker), stages.empty() ? "" : ": ", stages);
    add({{"ph", "M"},
         {"name", "thread_name"},
         {"pid", 0},
         {"tid", worker},
         {"args", {{"name", name}}}});
    add({{"ph", "M"},
         {"name", "thread_sort_index"},
         {"pid", 0},
         {"tid", worker},
         {"args", {{"sort_index", worker}}}});
  }

  /// Adds an action as a complete event ("X"), or as an instant ("i") if it takes no time.
  void add_action(std::size_t worker, std::size_t position) {
    const Action& action = schedule_.workers[worker][position];
    const std::int64_t length = length_of(worker, position);
    Json event = {{"name", labels_.action(action)}, {"cat", kind_name(action.kind)}};
    set_place(event, worker, begin_of(worker, position));
    event["ph"] = length > 0 ? "X" : "i";
    if (length > 0)
      event["dur"] = length;
    else
      event["s"] = "t";
    Json& details = event["args"];
    details = {
        {"stage", action.stage}, {"replica", action.replica}, {"minibatch", action.minibatch}};
    if (is_pass(action.kind)) {
      const WeightKey& key = versions_.workers[worker][position].key;
      details["microbatch"] = action.microbatch;
      details["loss"] = action.loss;
      details["version"] = key.version;
      details["ahead"] = key.ahead;
    }
    add(event);
  }

  /// Adds the arrow of the message that brings the pass its input, if it comes from another worker.
  /// The arrow starts 1 µs before the sender's end, so that viewers bind it to the sender.
  void add_message(std::size_t worker, std::size_t position) {
    const Action& action = schedule_.workers[worker][position];
    const ActionPlace input = index_.input_of(action);
    if (input == kNowhere || as_size(input.first) == worker) return;
    const auto from = as_size(input.first), at = as_size(input.second);
    const Json message = {{"name", action.kind == ActionKind::Forward ? "activation" : "gradient"},
                          {"cat", "message"},
                          {"id", messages_++}};
    Json sent = message, received = message;
    sent["ph"] = "s";
    set_place(sent, from, begin_of(from, at) + length_of(from, at) - 1);
    received["ph"] = "f";
    received["bp"] = "e";
    set_place(received, worker, begin_of(worker, position));
    add(sent);
    add(received);
  }

  static void set_place(Json& event, std::size_t worker, std::int64_t time) {
    event["pid"] = 0;
    event["tid"] = worker;
    event["ts"] = time;
  }

  const Schedule& schedule_;
  const RenderLabels labels_;
  const Versions versions_;
  const std::vector<std::vector<Span>>& spans_;
  const PassIndex index_;
  std::vector<std::string> events_;
  int messages_ = 0;
};

}  // namespace

std::string render_trace(const Schedule& schedule) {
  const SlotTimes times = slot_times(schedule);
  std::vector<std::vector<Span>> spans;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    auto& of_worker = spans.emplace_back();
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const int begin = times.start[worker][i];
      const int end = begin + slots_of(schedule.workers[worker][i].kind);
      of_worker.push_back({begin * kSecondsPerSlot, end * kSecondsPerSlot});
    }
  }
  return render_trace(schedule, spans);
}

std::string render_trace(const Schedule& schedule, const std::vector<std::vector<Span>>& spans) {
  return Trace(schedule, spans).json();
}

}  // namespace pipewright
