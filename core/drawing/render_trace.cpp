// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/as_size.h"
#include "core/base/text.h"
#include "core/drawing/render.h"
#include "core/drawing/render_labels.h"
#include "core/schedule/late_gradients.h"
#include "core/schedule/lent_weights.h"

namespace pipewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsPerSlot = 1e-3;

/// Collects events of the Trace Event Format, one per line.
class Trace {
 public:
  /// `execution`: that of a run, whose waits are then drawn, too; empty: nothing was measured.
  Trace(const ProvedSchedule& proved, const std::vector<std::vector<Span>>& spans,
        const std::string& execution)
      : schedule_(proved.schedule),
        execution_(execution),
        labels_(schedule_),
        versions_(proved.versions),
        spans_(spans),
        index_(proved.index),
        lent_(schedule_, index_, versions_),
        late_(proved) {}

  std::string json() {
    for (std::size_t worker = 0; worker < schedule_.workers.size(); ++worker) {
      name_worker(worker);
      for (std::size_t i = 0; i < schedule_.workers[worker].size(); ++i) {
        if (measured()) add_wait(worker, i);
        add_action(worker, i);
        if (measured()) add_parts(worker, i);
        add_messages(worker, i);
      }
    }
    const std::string other =
        measured() ? concat("\"otherData\":", Json{{"execution", execution_}}.dump(), ",") : "";
    return concat("{\"displayTimeUnit\":\"ms\",", other, "\"traceEvents\":[\n",
                  join(events_, ",\n"), "\n]}\n");
  }

 private:
  bool measured() const { return !execution_.empty(); }
  /// Whole microseconds, or of a run nanoseconds, counted in thousandths of a microsecond.
  std::int64_t thousandths(double seconds) const {
    return measured() ? std::llround(seconds * 1e9) : 1000 * std::llround(seconds * 1e6);
  }
  std::int64_t begin_of(std::size_t worker, std::size_t position) const {
    return thousandths(spans_[worker][position].begin);
  }
  std::int64_t length_of(std::size_t worker, std::size_t position) const {
    return thousandths(spans_[worker][position].end) - begin_of(worker, position);
  }
  std::int64_t sending_at(std::size_t worker, std::size_t position) const {
    const Span& span = spans_[worker][position];
    return thousandths(span.end - span.sending);
  }
  /// The time as the format has it, in microseconds.
  static Json microseconds(std::int64_t thousandths) {
    if (thousandths % 1000 == 0) return thousandths / 1000;
    return static_cast<double>(thousandths) / 1000;
  }
  void add(const Json& event) { events_.push_back(event.dump()); }

  void name_worker(std::size_t worker) {
    const std::string stages = labels_.stages(worker);
    name_track(worker, worker, concat(labels_.worker(worker), stages.empty() ? "" : ": ", stages));
    const auto beside = [](const Action& action) { return goes_on_beside(action.kind); };
    if (measured() || std::ranges::none_of(schedule_.workers[worker], beside)) return;
    for (const ActionKindFacts& facts : kActionKinds)
      if (facts.track > 0)
        name_track(track_of(worker, {.kind = facts.kind}), worker,
                   concat(labels_.worker(worker), ": ", facts.name));
  }

  /// Tracks with equal `place` are listed in the order in which they are named.
  void name_track(std::size_t track, std::size_t place, const std::string& name) {
    add({{"ph", "M"},
         {"name", "thread_name"},
         {"pid", 0},
         {"tid", track},
         {"args", {{"name", name}}}});
    add({{"ph", "M"},
         {"name", "thread_sort_index"},
         {"pid", 0},
         {"tid", track},
         {"args", {{"sort_index", place}}}});
  }

  /// Where an action is drawn: of a run, whose worker began each itself, on the worker's own track.
  std::size_t track_of(std::size_t worker, const Action& action) const {
    const int track = measured() ? 0 : facts_of(action.kind).track;
    return schedule_.workers.size() * as_size(track) + worker;
  }

  /// Adds an action as a complete event ("X"), or as an instant ("i") if it takes no time.
  void add_action(std::size_t worker, std::size_t position) {
    const Action& action = schedule_.workers[worker][position];
    const std::int64_t length = length_of(worker, position);
    Json event = {{"name", labels_.action(action)}, {"cat", kind_name(action.kind)}};
    set_place(event, track_of(worker, action), begin_of(worker, position));
    event["ph"] = length > 0 ? "X" : "i";
    if (length > 0)
      event["dur"] = microseconds(length);
    else
      event["s"] = "t";
    Json& details = event["args"];
    details = {
        {"stage", action.stage}, {"replica", action.replica}, {"minibatch", action.minibatch}};
    if (of_microbatch(action.kind)) details["microbatch"] = action.microbatch;
    if (is_pass(action.kind)) {
      const WeightKey& key = versions_.workers[worker][position].key;
      details["loss"] = action.loss;
      details["version"] = key.version;
      details["ahead"] = key.ahead;
      if (action.with_next) details["with_next"] = true;
    }
    const Span& span = spans_[worker][position];
    for (const auto& [name, seconds] : {std::pair("decoding", span.decoding),
                                        {"encoding", span.encoding},
                                        {"sending", span.sending}})
      if (thousandths(seconds) > 0) details[name] = microseconds(thousandths(seconds));
    add(event);
  }

  void add_slice(std::size_t worker, const char* kind, const std::string& name, double begin,
                 double end) {
    const std::int64_t from = thousandths(begin), length = thousandths(end) - from;
    if (length <= 0) return;
    Json event = {{"name", name}, {"cat", kind}, {"ph", "X"}, {"dur", microseconds(length)}};
    set_place(event, worker, from);
    add(event);
  }

  /// Adds the time in which the worker waited for the action's message, if another one sends it.
  void add_wait(std::size_t worker, std::size_t position) {
    const ActionPlace input = index_.input_of(schedule_.workers[worker][position]);
    if (execution_ == "serial" || input == kNowhere || as_size(input.first) == worker) return;
    const double free = position == 0 ? 0 : spans_[worker][position - 1].end;
    add_slice(worker, "wait", concat("waits for ", labels_.worker(as_size(input.first))), free,
              spans_[worker][position].begin);
  }

  /// Adds what an action does besides computing, within its slice.
  void add_parts(std::size_t worker, std::size_t position) {
    const Span& span = spans_[worker][position];
    const double sends = span.end - span.sending;
    add_slice(worker, "codec", "decodes", span.begin, span.begin + span.decoding);
    add_slice(worker, "codec", "encodes", sends - span.encoding, sends);
    add_slice(worker, "send", "sends", sends, span.end);
  }

  /// Adds the arrows of the messages that bring the action its input, and of weights that stages
  /// share and their gradients.
  void add_messages(std::size_t worker, std::size_t position) {
    const Action& action = schedule_.workers[worker][position];
    const bool forward = action.kind == ActionKind::Forward;
    add_message(worker, position, index_.input_of(action), forward ? "activation" : "gradient");
    for (const Loan& loan : lent_.loans()) {
      Action of_owner = action;
      of_owner.stage = loan.from;
      if (action.stage == loan.to && forward && lent_.take(action, loan.from))
        add_message(worker, position, index_.forward(of_owner), "weights");
      if (action.stage == loan.from)
        add_message(worker, position, lent_.giver(action, loan.to), "gradient of weights");
    }
    for (const LateGradient& each :
         late_.taken({static_cast<int>(worker), static_cast<int>(position)}))
      add_message(worker, position, each.pass, "gradient of weights");
  }

  /// Adds the arrow of a message, if it comes from another worker. It starts 1 µs before the sender
  /// begins to hand it over, and within the sender's action, so that viewers bind it to that.
  void add_message(std::size_t worker, std::size_t position, ActionPlace input, const char* name) {
    if (input == kNowhere || as_size(input.first) == worker) return;
    const auto from = as_size(input.first), at = as_size(input.second);
    const Json message = {{"name", name}, {"cat", "message"}, {"id", messages_++}};
    Json sent = message, received = message;
    sent["ph"] = "s";
    set_place(sent, from, std::max(begin_of(from, at), sending_at(from, at) - kArrowStartsBefore));
    received["ph"] = "f";
    received["bp"] = "e";
    set_place(received, worker, begin_of(worker, position));
    add(sent);
    add(received);
  }

  static void set_place(Json& event, std::size_t worker, std::int64_t time) {
    event["pid"] = 0;
    event["tid"] = worker;
    event["ts"] = microseconds(time);
  }

  static constexpr std::int64_t kArrowStartsBefore = 1000;  // thousandths of a microsecond

  const Schedule& schedule_;
  const std::string execution_;
  const RenderLabels labels_;
  const Versions& versions_;
  const std::vector<std::vector<Span>>& spans_;
  const PassIndex& index_;
  const LentWeights lent_;
  const LateGradients late_;
  std::vector<std::string> events_;
  int messages_ = 0;
};

}  // namespace

std::string render_trace(const ProvedSchedule& proved) {
  const Schedule& schedule = proved.schedule;
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
  return render_trace(proved, spans);
}

std::string render_trace(const ProvedSchedule& proved,
                         const std::vector<std::vector<Span>>& spans) {
  return Trace(proved, spans, "").json();
}

std::string render_measured_trace(const ProvedSchedule& proved,
                                  const std::vector<std::vector<Span>>& spans,
                                  const std::string& execution) {
  return Trace(proved, spans, execution).json();
}

}  // namespace pipewright
