// SPDX-License-Identifier: Apache-2.0
// `pipewright simulate`: simulates a schedule on given hardware, for its time and memory.
#include <algorithm>

#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/drawing/render_refusal.h"
#include "core/drawing/render_simulation.h"
#include "core/experiment/experiment.h"
#include "core/profiling/codec_costs.h"
#include "core/profiling/cost_source.h"
#include "core/profiling/hardware_source.h"
#include "core/profiling/measured_balance.h"
#include "core/profiling/modelled.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/commands/simulate_sweep.h"
#include "tools/drawing_title.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

/// The time at which the first mini-batches are done, as many as can be distinguished in a drawing.
double drawn_until(const Schedule& schedule, const Simulation& simulation) {
  constexpr int kBars = 50;
  const int each = 2 * schedule.shape.microbatches + 1;
  const int shown = std::clamp(kBars / each, 1, schedule.shape.minibatches);
  return simulation.minibatch_ends[static_cast<std::size_t>(shown - 1)];
}

int simulate_one(const CommandLine& line) {
  Problems faults;
  const OneExperiment one = one_experiment(line.experiment_arguments(), faults);
  Experiment experiment = read_experiment(one.document, faults);
  need_libtorch();
  if (!one.remark.empty()) print_error("%s\n", one.remark.c_str());
  CostSource source(cost_files(line));
  const Hardware machine =
      HardwareSource(line.text("hardware")).of(one.document, experiment.shape(1).workers());
  SourcedCosts cost = source.of(experiment, machine);
  const int given = given_minibatches(line);
  const Schedule schedule = experiment.schedule(given > 0 ? given : steady_minibatches(experiment));
  validate_for_eyes(schedule);
  const MessageSizes sizes = source.is_table() ? MessageSizes::OfCosts : MessageSizes::OfModel;
  const std::vector<std::string> untimed =
      account_for_codecs(cost.stages, experiment, machine, sizes);
  const Simulation simulation =
      simulate(schedule, cost.stages, machine,
               {.memory_over_time = line.given("json"),
                .optimizer_state = static_cast<double>(optimizer_slots(experiment, schedule))});
  const std::int64_t samples = cost.minibatch.value_or(experiment.loader.batch_size);
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

int run_simulate(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSimulate,
      "Runs an experiment's schedule in virtual time: makespan and bubble, how busy each worker "
      "and link is, samples a second, and the memory of each worker at its peak. What the stages "
      "cost comes from a profile (`pipewright profile`) or a table that is named here; otherwise "
      "it is counted: operations and bytes at the rates of the hardware. The first line of what is "
      "printed says which. What they run on is a description like those in experiments/hardware, "
      "or the section `hardware` of the experiment. With --sweep all points of the file's sweep "
      "are "
      "simulated, and the fastest are named.");
  line.experiment(false);
  line.point();
  line.option("hardware", "FILE",
              "a description of devices and links in the place of hardware.file; default: what the "
              "section `hardware` says, or equal devices and free transfers");
  line.option("profile-file", "FILE",
              "a profile of the model, measured on a device of the hardware's kind");
  line.flag("other-device",
            "take the profile's times though the hardware's devices are others; devices.speed says "
            "how many times as fast these are");
  line.option(
      "costs", "FILE",
      "a table of the stages' costs instead of a profile: a YAML mapping of forward, backward, "
      "update, … in seconds and input_bytes, activation_bytes, … of a micro-batch to a "
      "number for all stages or a list with one per stage");
  line.option("minibatches", "N",
              "how many mini-batches to simulate; default: four times the stages, at least 8; with "
              "--sweep as many as show a steady pace");
  line.option("trace", "FILE", "write a trace for chrome://tracing or Perfetto");
  line.option("svg", "FILE", "draw, to scale, what every worker does in the first mini-batches");
  line.option("json", "FILE", "write all figures as JSON, memory over time included");
  declare_sweep_options(line);
  if (!line.parse(arguments)) return 0;
  if (line.given("sweep")) {
    need_libtorch();
    return run_simulated_sweep(line);
  }
  refuse_sweep_options(line);
  return simulate_one(line);
}
}  // namespace

const Command kSimulate{
    "simulate",
    "simulate FILE [--hardware H.yaml] [--profile-file P | --costs C.yaml] [--sweep] [--svg F]…",
    "how long it would take on given hardware, and what it would hold", run_simulate};

}  // namespace pipewright
