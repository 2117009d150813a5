// SPDX-License-Identifier: Apache-2.0
// `pipewright simulate`: simulates a schedule on given hardware, for its time and memory.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/cost/cost_table.h"
#include "core/drawing/render.h"
#include "core/drawing/render_refusal.h"
#include "core/drawing/render_simulation.h"
#include "core/experiment/experiment.h"
#include "core/profiling/codec_costs.h"
#include "core/profiling/measured_balance.h"
#include "core/profiling/modelled.h"
#include "core/profiling/profiling.h"
#include "core/system/file.h"
#include "core/system/host_name.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/drawing_title.h"

namespace pipewright {
namespace {

/// The costs of the stages, and a few words on their origin.
struct Costs {
  std::vector<StageCost> stages;
  std::string from;
  std::int64_t samples = 0;  ///< of a micro-batch, if a table says it
};

Costs costs_of_table(const std::string& file, int stages) {
  Problems problems;
  const Value document = load_yaml(file, problems);
  CostTable table = read_cost_table(document, stages, problems);
  problems.throw_if_any();
  return {std::move(table.stages), concat(file, ", a table"), table.samples};
}

/// Costs from a profile, which also decides the cut if `balance` is time or memory.
Costs costs_of(const Profile& profile, Experiment& experiment, const std::string& from) {
  cut_by(experiment, profile);
  return {stage_costs(profile, experiment.balance), from};
}

/// The origin of a profile in words: "profile.yaml, measured on cpu, this machine", and the
/// hardware it is used for.
std::string origin(const std::string& file, const Profile& profile, const Hardware& machine) {
  std::string text = concat(file, ", measured on ", profile.device);
  if (!profile.machine.empty())
    text += profile.machine == host_name() ? std::string(", this machine")
                                           : concat(", on the machine ", profile.machine);
  if (machine.device_name.empty()) return text;
  const double speed = machine.devices.front().speed;
  const bool equal = std::ranges::all_of(
      machine.devices, [&](const Device& device) { return device.speed == speed; });
  return concat(text, "; taken for ", machine.device_name,
                equal ? concat(" at speed ", speed) : std::string(" at the speeds of its file"));
}

Costs costs_of_profile(const std::string& file, Experiment& experiment, const Hardware& machine) {
  Profile profile = read_profile(load_yaml(file));
  if (!profile.timed)
    throw Error(
        ErrorKind::Experiment,
        "this profile was counted on the device meta and has no times; `pipewright profile FILE "
        "--device cpu` or cuda measures them",
        file);
  const std::string from = origin(file, profile, machine);
  profile.device =
      described(experiment, at::kCPU).device;  // any device fits: the hardware file says which
  if (const std::string why = misfit(profile, experiment, at::kCPU); !why.empty())
    throw Error(ErrorKind::Experiment,
                concat("this profile does not fit: ", why, "; `pipewright profile FILE` makes one"),
                file);
  return costs_of(profile, experiment, from);
}

/// The stages' costs from the source that the command line names. Throws Error{Experiment} without
/// one.
Costs costs(const CommandLine& line, Experiment& experiment, const Hardware& machine) {
  if (line.given("costs") && line.given("profile-file"))
    throw Error(ErrorKind::Experiment, "--costs and --profile-file exclude each other");
  if (line.given("costs")) return costs_of_table(line.text("costs"), experiment.pipeline.stages);
  if (line.given("profile-file"))
    return costs_of_profile(line.text("profile-file"), experiment, machine);
  if (machine.rates.known())
    return costs_of(counted_profile(experiment, machine), experiment, counted_from(machine));
  throw Error(ErrorKind::Experiment,
              concat("what the stages cost is not known: `pipewright profile ", line.text("FILE"),
                     "` measures it and writes profile.yaml, which --profile-file profile.yaml "
                     "then takes; or write --costs, or give --hardware that says its teraflops"));
}

std::int64_t samples_per_minibatch(const Costs& cost, const Experiment& experiment) {
  if (cost.samples == 0) return experiment.loader.batch_size;
  return cost.samples * experiment.pipeline.microbatches * experiment.pipeline.replicas;
}

Hardware hardware(const CommandLine& line, int workers) {
  return line.given("hardware") ? load_hardware(line.text("hardware")) : ideal_hardware(workers);
}

int minibatches(const CommandLine& line, const Experiment& experiment) {
  if (!line.given("minibatches")) return steady_minibatches(experiment);
  const int given = line.integer("minibatches");
  if (given < 1)
    throw Error(ErrorKind::Experiment, concat("--minibatches is ", given, "; expected at least 1"));
  return given;
}

/// The time at which the first mini-batches are done, as many as can be distinguished in a drawing.
double drawn_until(const Schedule& schedule, const Simulation& simulation) {
  constexpr int kBars = 50;
  const int each = 2 * schedule.shape.microbatches + 1;
  const int shown = std::clamp(kBars / each, 1, schedule.shape.minibatches);
  return simulation.minibatch_ends[static_cast<std::size_t>(shown - 1)];
}

int run_simulate(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSimulate,
      "Runs an experiment's schedule in virtual time: makespan and bubble, how busy each worker "
      "and link is, samples a second, and the memory of each worker at its peak. What the stages "
      "cost comes from a profile (`pipewright profile`) or a table that is named here; otherwise "
      "it is counted: operations and bytes at the rates of the hardware. The first line of what is "
      "printed says which. What they run on is a description like those in experiments/hardware.");
  line.experiment(false);
  line.point();
  line.option("hardware", "FILE",
              "a description of devices and links; default: equal devices, free transfers");
  line.option("profile-file", "FILE", "a profile of the model, whatever device it was measured on");
  line.option(
      "costs", "FILE",
      "a table of the stages' costs instead of a profile: a YAML mapping of forward, backward, "
      "update, … in seconds and input_bytes, activation_bytes, … of a micro-batch to a "
      "number for all stages or a list with one per stage");
  line.option("minibatches", "N",
              "how many mini-batches to simulate; default: four times the stages, at least 8");
  line.option("trace", "FILE", "write a trace for chrome://tracing or Perfetto");
  line.option("svg", "FILE", "draw, to scale, what every worker does in the first mini-batches");
  line.option("json", "FILE", "write all figures as JSON, memory over time included");
  if (!line.parse(arguments)) return 0;
  Experiment experiment = experiment_of(line);
  const Hardware machine = hardware(line, experiment.shape(1).workers());
  Costs cost = costs(line, experiment, machine);
  const Schedule schedule = experiment.schedule(minibatches(line, experiment));
  validate_for_eyes(schedule);
  const MessageSizes sizes = line.given("costs") ? MessageSizes::OfCosts : MessageSizes::OfModel;
  const std::vector<std::string> untimed =
      account_for_codecs(cost.stages, experiment, machine, sizes);
  const Simulation simulation =
      simulate(schedule, cost.stages, machine,
               {.memory_over_time = line.given("json"),
                .optimizer_state = static_cast<double>(optimizer_slots(experiment, schedule))});
  const std::int64_t samples = samples_per_minibatch(cost, experiment);
  print("times: %s\n%s: %s", cost.from.c_str(), experiment.name.c_str(),
        render_simulation(schedule, machine, simulation, samples).c_str());
  if (!schedule.auxiliary.empty() && !line.given("costs"))
    print("\nnote: a profile has no auxiliary heads; their time is not counted\n");
  if (!untimed.empty())
    print(
        "\nnote: the hardware does not say how fast %s encodes and decodes (codecs: in its "
        "file); only bytes are counted\n",
        join(untimed, ", ").c_str());
  if (line.given("trace"))
    write_output(line.text("trace"), render_trace(schedule, simulation.spans));
  if (line.given("svg"))
    write_output(line.text("svg"),
                 render_timeline_svg(schedule, simulation, drawing_title(experiment),
                                     drawn_until(schedule, simulation)));
  if (line.given("json")) {
    Value figures = simulation_value(schedule, machine, simulation, samples);
    figures.at_or_add("costs_from") = Value::of(cost.from);
    write_output(line.text("json"), to_json(figures) + "\n");
  }
  return 0;
}

}  // namespace

const Command kSimulate{
    "simulate", "simulate FILE [--hardware H.yaml] [--profile-file P | --costs C.yaml] [--svg F]…",
    "how long it would take on given hardware, and what it would hold", run_simulate};

}  // namespace pipewright
