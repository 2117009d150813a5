// SPDX-License-Identifier: Apache-2.0
#include "tests/replay/outcome.h"

#include <array>
#include <optional>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/schedule/find_loop.h"
#include "core/schedule/prove.h"
#include "core/schedule/versions.h"
#include "core/simulation/simulate.h"
#include "tests/replay/machines.h"
#include "tests/unit/schemes/scheme_cases.h"

namespace pipewright::replay {
namespace {

constexpr std::size_t kDigits = 8;           // hexadecimal, of a digest: 32 bits
constexpr std::size_t kRefusalLength = 100;  // bytes shown of a message

std::string text_of(const Weights& weights) {
  constexpr std::array kSources{"latest", "version", "of forward"};
  return concat(kSources[static_cast<std::size_t>(weights.source)], " ", weights.version, " ahead ",
                weights.ahead, " rule ", weights.rule);
}

std::string text_of(const Action& action) {
  std::string text = concat(kind_name(action.kind), " stage ", action.stage, " replica ",
                            action.replica, " mini-batch ", action.minibatch);
  if (is_pass(action.kind))
    text += concat(" micro-batch ", action.microbatch, " weights ", text_of(action.weights));
  if (facts_of(action.kind).of_loss) text += concat(" loss ", action.loss);
  return text + concat(" scale ", action.scale, action.with_next ? " with the next\n" : "\n");
}

std::string text_of(const Schedule& schedule) {
  constexpr std::array kRules{"optimizer", "lookahead", "geometric", "drift"};
  std::string text = concat("placement ", list_text(schedule.shape.placement), "\nauxiliary ",
                            list_text(schedule.auxiliary), "\n");
  for (const std::vector<int>& workers : schedule.shape.replica_placement)
    text += concat("replica on workers ", list_text(workers), "\n");
  for (const std::vector<int>& losses : schedule.learns_from)
    text += concat("learns from ", list_text(losses), "\n");
  for (const PredictionRule& rule : schedule.rules)
    text += concat("rule ", kRules[static_cast<std::size_t>(rule.kind)], " decay ", rule.decay,
                   " weight decay ", rule.weight_decay, rule.last_lr ? " last lr" : "",
                   rule.each_lr ? " each lr" : "", "\n");
  for (std::size_t w = 0; w < schedule.workers.size(); ++w) {
    text += concat("worker ", w, "\n");
    for (const Action& action : schedule.workers[w]) text += text_of(action);
  }
  return text;
}

/// The order in which it runs, and its loop.
std::string text_of(const ProvedSchedule& proved) {
  std::string text;
  for (const auto& [worker, index] : proved.order) text += concat(worker, " ", index, "\n");
  if (!proved.loop) return text;
  const Loop& loop = *proved.loop;
  text +=
      concat(loop.rounds, " rounds of ", loop.step.minibatches, " mini-batches, updates ",
             list_text(loop.step.updates), ", order ", loop.order.begin, " ", loop.order.end, "\n");
  for (const Loop::Part& body : loop.bodies) text += concat(body.begin, " ", body.end, "\n");
  return text;
}

std::string text_of(const WeightKey& key) {
  return concat(" (", key.version, " ", key.ahead, " ", key.rule, ")");
}

std::string text_of(const ActionWeights& weights) {
  std::string text = concat("latest ", weights.latest, text_of(weights.key),
                            weights.makes ? " makes" : "", weights.in_place ? " in place" : "");
  if (!weights.frees.empty()) text += " frees";
  for (const WeightKey& key : weights.frees) text += text_of(key);
  return text + "\n";
}

std::string text_of(const Versions& versions) {
  std::string text;
  for (std::size_t w = 0; w < versions.workers.size(); ++w) {
    text += concat("worker ", w, "\n");
    for (const ActionWeights& weights : versions.workers[w]) text += text_of(weights);
  }
  for (const std::vector<StageVersions>& replicas : versions.stages)
    for (const StageVersions& stage : replicas)
      text += concat("copies ", stage.copies, " staleness ", stage.forward_staleness, " ",
                     stage.backward_staleness, "\n");
  return text;
}

std::string text_of(const Traffic& traffic) {
  return concat(traffic.messages, " messages ", traffic.bytes, " bytes ", traffic.busy, " s\n");
}

std::string times_of(const Simulation& simulation) {
  std::string text = concat("makespan ", simulation.makespan, "\n");
  for (std::size_t w = 0; w < simulation.workers.size(); ++w) {
    const WorkerReport& worker = simulation.workers[w];
    text += concat("worker ", w, " computing ", worker.computing, " communicating ",
                   worker.communicating, " idle ", worker.idle, "\n");
    for (const Span& span : simulation.spans[w]) text += concat(span.begin, " ", span.end, "\n");
  }
  for (const double end : simulation.minibatch_ends) text += concat("mini-batch ", end, "\n");
  for (const LinkReport& link : simulation.links)
    text += concat("link ", link.from, " ", link.to, " ", text_of(link.traffic));
  for (const Traffic& bus : simulation.buses) text += concat("bus ", text_of(bus));
  return text;
}

std::string memory_of(const Simulation& simulation) {
  std::string text;
  for (const WorkerReport& worker : simulation.workers) {
    const MemoryUse& peak = worker.peak;
    text +=
        concat("peak at ", worker.peak_at, " weights ", peak.weights, " gradients ", peak.gradients,
               " optimizer ", peak.optimizer, " activations ", peak.activations, " boundaries ",
               peak.boundaries, " passing ", peak.passing, " most state ", worker.most_state, "\n");
  }
  return text;
}

/// How a message begins: whole words of its first line.
std::string beginning(const std::string& message) {
  const std::string line = message.substr(0, message.find('\n'));
  return line.size() <= kRefusalLength ? line : line.substr(0, line.rfind(' ', kRefusalLength));
}

/// The schedule with an order in which it can run, and its loop if the case wants one.
ProvedSchedule proved(const Case& from) {
  const SchemeReading reading(from.scheme, from.options);
  reading.problems.throw_if_any();
  PipelineShape shape = from.shape;
  if (shape.placement.empty()) shape.placement = reading.scheme->placement(shape.stages);
  const auto make = [&](int minibatches) {
    PipelineShape other = shape;
    other.minibatches = minibatches;
    return with_recomputation(reading.scheme->schedule(other), from.recomputation);
  };
  if (from.loop && reading.scheme->repeats())
    if (auto loop = find_loop(make, shape.minibatches)) return *std::move(loop);
  return prove(make(shape.minibatches));
}

/// Fills in times and memory.
void simulate_everywhere(const ProvedSchedule& proved, std::string& times, std::string& memory) {
  for (const Machine& machine : machines(proved.schedule.shape)) {
    const Simulation simulation = simulate(proved, machine.costs, machine.hardware,
                                           {.memory = machine.counts_memory, .optimizer_state = 2});
    times += concat(machine.hardware.name, "\n", times_of(simulation));
    if (machine.counts_memory) memory = memory_of(simulation);
  }
}

}  // namespace

Outcome outcome_of(const Case& from) {
  Outcome outcome;
  try {
    const ProvedSchedule made = proved(from);
    for (const std::vector<Action>& worker : made.schedule.workers)
      outcome.actions += worker.size();
    auto& [schedule, order, versions, times, memory] = outcome.texts;
    schedule = text_of(made.schedule);
    order = text_of(made);
    versions = text_of(made.versions);
    simulate_everywhere(made, times, memory);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Bug) throw;
    outcome.refusal = beginning(error.message());
  }
  return outcome;
}

std::string line_of(const Case& from, const Outcome& outcome) {
  std::string line = concat(from.name, kArrow);
  if (!outcome.refusal.empty()) return concat(line, kRefused, outcome.refusal);
  line += concat(outcome.actions);
  for (const std::string& text : outcome.texts) line += " " + sha256(text).substr(0, kDigits);
  return line;
}

}  // namespace pipewright::replay
