// SPDX-License-Identifier: Apache-2.0
#include "core/traces/trace_file.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/config/json.h"

namespace pipewright {
namespace {

constexpr std::int64_t kMostOfAnything = 1 << 20;  // stages, workers, mini-batches
constexpr double kMicroseconds = 1e-6;

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(ErrorKind::Data,
              concat("is no whole trace of a run (", why,
                     "); output.trace: true makes `pipewright run` write one"),
              file);
}

std::optional<ActionKind> kind_named(const std::string& name) {
  for (const ActionKindFacts& facts : kActionKinds)
    if (name == facts.name) return facts.kind;
  return {};
}

/// One event of the file.
class Event {
 public:
  Event(const Value& value, const std::string& file) : value_(value), file_(file) {}

  std::string text(const char* name) const {
    const Value* const field = value_.find(name);
    return field != nullptr && field->is(Value::Kind::Text) ? field->text : std::string();
  }
  bool flag(const char* path) const {
    const Value* const field = value_.find_path(path);
    return field != nullptr && field->is(Value::Kind::Flag) && field->flag;
  }
  int count(const char* path) const {
    const Value* const field = value_.find_path(path);
    if (field == nullptr || !field->is(Value::Kind::Integer) || field->integer < 0 ||
        field->integer >= kMostOfAnything)
      refuse(file_, concat("an action has no whole number '", path, "'"));
    return static_cast<int>(field->integer);
  }
  /// Seconds of a time in microseconds; 0 where there is none.
  double seconds(const char* path) const {
    const Value* const field = value_.find_path(path);
    if (field == nullptr) return 0;
    const double read = field->is(Value::Kind::Integer)  ? static_cast<double>(field->integer)
                        : field->is(Value::Kind::Number) ? field->number
                                                         : kNoNumber;
    if (!(read >= -1e15 && read <= 1e15))
      refuse(file_, concat("the time '", path, "' is ", field->shown()));
    return read * kMicroseconds;
  }

 private:
  const Value& value_;
  const std::string& file_;
};

Action action_of(const Event& event, ActionKind kind) {
  Action action{.kind = kind,
                .stage = event.count("args.stage"),
                .replica = event.count("args.replica"),
                .minibatch = event.count("args.minibatch")};
  if (of_microbatch(kind)) action.microbatch = event.count("args.microbatch");
  if (!is_pass(kind)) return action;
  action.loss = event.count("args.loss");
  action.with_next = event.flag("args.with_next");
  return action;
}

Span span_of(const Event& event) {
  const double begin = event.seconds("ts");
  return {.begin = begin,
          .end = begin + event.seconds("dur"),
          .decoding = event.seconds("args.decoding"),
          .encoding = event.seconds("args.encoding"),
          .sending = event.seconds("args.sending")};
}

/// Derives the shape, and what stages learn from, from the actions.
void shape_from_actions(Schedule& schedule, const std::string& file) {
  PipelineShape& shape = schedule.shape;
  std::vector<std::set<int>> losses;
  std::map<std::pair<int, int>, int> holders;  // {replica, stage} → worker
  std::set<int> heads;
  for (std::size_t w = 0; w < schedule.workers.size(); ++w)
    for (const Action& action : schedule.workers[w]) {
      shape.stages = std::max(shape.stages, action.stage + 1);
      shape.replicas = std::max(shape.replicas, action.replica + 1);
      shape.microbatches = std::max(shape.microbatches, action.microbatch + 1);
      shape.minibatches = std::max(shape.minibatches, action.minibatch + 1);
      losses.resize(as_size(shape.stages));
      holders[{action.replica, action.stage}] = static_cast<int>(w);
      if (makes_weight_gradient(action.kind)) losses[as_size(action.stage)].insert(action.loss);
      if (action.kind == ActionKind::Head) heads.insert(action.stage);
    }
  for (const std::set<int>& sites : losses)
    schedule.learns_from.emplace_back(sites.begin(), sites.end());
  schedule.auxiliary.assign(heads.begin(), heads.end());
  std::vector<std::vector<int>> workers(as_size(shape.replicas));
  for (const auto& [place, worker] : holders) workers[as_size(place.first)].push_back(worker);
  if (holders.size() != as_size(shape.replicas) * as_size(shape.stages))
    refuse(file, "a stage has no actions");
  shape.place(std::move(workers));
  if (as_size(shape.workers()) != schedule.workers.size())
    refuse(file, concat("it has ", schedule.workers.size(), " workers, its stages need ",
                        shape.workers()));
}

/// Whether every worker performs its actions one after another.
bool in_order(const Spans& spans) {
  return std::ranges::all_of(spans, [](const std::vector<Span>& worker) {
    double free = worker.empty() ? 0 : worker.front().begin;
    for (const Span& span : worker) {
      constexpr double kRounding = 2e-9;  // begin and length are each rounded to 1 ns
      if (span.begin < free - kRounding || span.end < span.begin) return false;
      free = span.end;
    }
    return true;
  });
}

}  // namespace

Spans from_first_action(Spans spans) {
  double first = std::numeric_limits<double>::infinity();
  for (const std::vector<Span>& worker : spans)
    if (!worker.empty()) first = std::min(first, worker.front().begin);
  for (std::vector<Span>& worker : spans)
    for (Span& span : worker) {
      span.begin -= first;
      span.end -= first;
    }
  return spans;
}

MeasuredTrace read_trace(const std::filesystem::path& file) {
  const std::string name = file.string();
  if (std::error_code none; !std::filesystem::exists(file, none))
    throw Error(ErrorKind::Data,
                "is not there; output.trace: true makes `pipewright run` write one", name);
  const Value document = load_json(file);
  const Value* const events = document.find("traceEvents");
  const Value* const execution = document.find_path("otherData.execution");
  if (events == nullptr || execution == nullptr || !execution->is(Value::Kind::Text))
    refuse(name, "it was not measured, or by another version");
  Schedule schedule;
  Spans spans;
  for (const Value& value : events->items) {
    const Event event(value, name);
    const auto kind = kind_named(event.text("cat"));
    if (!kind) continue;
    const std::size_t worker = as_size(event.count("tid"));
    if (worker >= schedule.workers.size()) {
      schedule.workers.resize(worker + 1);
      spans.resize(worker + 1);
    }
    schedule.workers[worker].push_back(action_of(event, *kind));
    spans[worker].push_back(span_of(event));
  }
  if (schedule.workers.empty()) refuse(name, "it has no actions");
  shape_from_actions(schedule, name);
  if (!in_order(spans)) refuse(name, "actions of one worker overlap");
  spans = from_first_action(std::move(spans));
  try {
    return {.proved = prove(std::move(schedule)),
            .spans = std::move(spans),
            .in_turns = execution->text == "serial",
            .in_threads = execution->text == "threads"};
  } catch (const Error& error) {
    refuse(name, concat("its actions are no schedule: ",
                        error.message().substr(0, error.message().find(static_cast<char>(10)))));
  }
}

}  // namespace pipewright
