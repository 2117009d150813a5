// SPDX-License-Identifier: Apache-2.0
// `pipewright simulate`: simulates a schedule on given hardware, for its time and memory.
#include <algorithm>
#include <fstream>

#include "core/base/error.h"
#include "core/config/merge.h"
#include "core/drawing/render.h"
#include "core/drawing/render_answer.h"
#include "core/drawing/render_simulation.h"
#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/exports/chakra.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/file.h"
#include "core/system/plain_file.h"
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
  const int slots = 2 * schedule.shape.microbatches + 1;
  const int shown = std::clamp(kBars / slots, 1, schedule.shape.minibatches);
  return simulation.minibatch_ends[static_cast<std::size_t>(shown - 1)];
}

void print_simulation_notes(const std::vector<std::string>& untimed, const std::string& unlimited) {
  if (!untimed.empty())
    print(
        "\nnote: the hardware does not say how fast %s encodes and decodes (codecs: in its "
        "file); only bytes are counted\n",
        join(untimed, ", ").c_str());
  if (!unlimited.empty()) print("\nnote: %s\n", unlimited.c_str());
}

/// What the experiment would gain by a cut by time, if it has a rule that ignores times; "" if
/// nothing. The other stages are simulated for as many mini-batches.
std::string balance_advice(const Experiment& experiment, const Value& document, CostSource& source,
                           const Hardware& machine, const SteadySimulation& steady) {
  const Value* const balance = experiment.resolved.find_path("pipeline.balance");
  const bool by_rule = balance->is(Value::Kind::Text) &&
                       (balance->text == "parameters" || balance->text == "layers");
  if (!by_rule || source.is_table() || experiment.pipeline.stages == 1) return {};
  Value other = document;
  Problems none;
  set_path(other, "pipeline.balance", Value::of("time"), none);
  try {
    SteadySimulator simulator(read_experiment(other), source);
    const double pace =
        simulator.on(machine, {.minibatches = steady.minibatches}).figures().samples_per_second;
    constexpr double kWorthIt = 1.02;
    if (pace < kWorthIt * steady.figures().samples_per_second) return {};
    return concat("\nnote: stages are uneven; try pipeline.balance: time, with which it would be ",
                  pace_text(pace), " samples/s\n");
  } catch (const Error&) {
    return {};  // such a cut is not possible here
  }
}

/// Throws Error{Data} if the file is there and does not begin as this command writes it: somebody
/// else's file has the name that nobody gave.
void require_own_file(const std::filesystem::path& file) {
  require_plain_file(file);
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return;
  std::string beginning(64, '\0');
  std::ifstream in(file, std::ios::binary);  // not as an input, which could not be replaced
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (!is_chakra_file(beginning))
    throw Error(ErrorKind::Data, "is no file of `simulate --chakra` and stays; give another folder",
                file.string());
}

/// Writes a trace for each worker, and with replicas their groups, to a folder that is made if it
/// is missing, but not those above it.
void write_chakra(const std::filesystem::path& folder, const std::string& name,
                  const SimulatedSchedule& simulated) {
  const ChakraTraces traces(simulated);
  const int workers = static_cast<int>(simulated.proved.schedule.workers.size());
  std::vector<std::pair<std::filesystem::path, int>> files;
  for (int worker = 0; worker < workers; ++worker)
    files.emplace_back(folder / concat(name, ".", worker, ".et"), worker);
  const std::string groups = chakra_groups(simulated.proved.schedule);
  const std::filesystem::path groups_file = folder / concat(name, ".groups.json");
  check_output((folder / "").parent_path());
  make_folders(folder);
  for (const auto& [file, worker] : files) {
    check_output(file);
    require_own_file(file);
  }
  if (!groups.empty()) check_output(groups_file), require_own_file(groups_file);
  for (const auto& [file, worker] : files) write_file(file, traces.of_worker(worker));
  print("wrote %s\n",
        (folder / concat(name, workers > 1 ? concat(".{0…", workers - 1, "}") : ".0", ".et"))
            .c_str());
  if (!groups.empty()) write_output(groups_file, groups);
  if (simulated.hardware.receives == Receives::ProgramOrder)
    print(
        "note: the traces do not say that one wire serves a device's messages in the order of its "
        "program (copies.receives: program_order); whoever reads them simulates links of its "
        "own\n");
}

int simulate_one(const CommandLine& line) {
  Problems faults;
  const OneExperiment one = one_experiment(line.experiment_arguments(), faults);
  Experiment experiment = read_experiment(one.document, faults);
  need_libtorch();
  if (!one.remark.empty()) print_error("%s\n", one.remark.c_str());
  CostSource source(cost_files(line));
  SteadySimulator simulator(std::move(experiment), source, prove_for_eyes);
  const Hardware machine =
      HardwareSource(hardware_file(line.text("hardware"))).of(one.document, simulator.shape());
  const int given = given_minibatches(line);
  const int minibatches = given > 0 ? given : shown_minibatches(simulator.experiment());
  const SteadySimulation steady = simulator.on(
      machine, {.minibatches = minibatches,
                .memory_over_time = line.given("json"),
                .transfers = line.given("svg"),
                .written = line.given("json") || line.given("trace") || line.given("chakra")});
  const Simulation& simulation = steady.simulation;
  const ProvedSchedule& proved = simulator.schedule(minibatches);
  const Schedule& schedule = proved.schedule;
  const IdleParts idle = idle_parts(proved, steady.costs, machine, simulation);
  print("times: %s\n%s: %s", steady.costs_from.c_str(), simulator.experiment().name.c_str(),
        render_simulation(schedule, machine, simulation, idle, steady.samples).c_str());
  print_simulation_notes(steady.untimed, unlimited_links_remark(machine, simulation));
  constexpr double kUneven = 0.02;  // of all workers' time
  if (idle.stages > kUneven)
    print("%s",
          balance_advice(simulator.experiment(), one.document, source, machine, steady).c_str());
  print("%s", render_answer(machine, simulation, idle, steady.samples).c_str());
  if (line.given("trace")) write_output(line.text("trace"), render_trace(proved, simulation.spans));
  if (line.given("svg"))
    write_output(line.text("svg"),
                 render_timeline_svg(schedule, simulation, drawing_title(simulator.experiment()),
                                     drawn_until(schedule, simulation)));
  if (line.given("chakra"))
    write_chakra(line.text("chakra"), simulator.experiment().name,
                 {proved, steady.costs, machine, simulation});
  if (line.given("json")) {
    Value figures = simulation_value(schedule, machine, simulation, idle, steady.samples);
    figures.at_or_add("costs_from") = Value::of(steady.costs_from);
    write_output(line.text("json"), to_json(figures) + "\n");
  }
  return 0;
}

int run_simulate(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSimulate,
      "Runs an experiment's schedule in virtual time: makespan, samples a second, how busy each "
      "worker and link is, the memory of each worker at its peak, and the bubble with its causes: "
      "the schedule itself, which would be idle for as long with equal stages and free transfers, "
      "uneven stages, and transfers. What the stages "
      "cost comes from a profile (`pipewright profile`) or a table that is named here; otherwise "
      "it is counted: operations and bytes at the rates of the hardware. The first line of what is "
      "printed says which. What they run on is a description like those in experiments/hardware, "
      "or the section `hardware` of the experiment. With --sweep all points of the file's sweep "
      "are "
      "simulated, and the fastest are named.");
  line.experiment(false);
  line.point();
  line.option(
      "hardware", "FILE",
      "a description of devices and links in the place of hardware.file, or the name of one "
      "of `list hardware`; default: what the "
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
              "how many mini-batches to simulate; default: four times the stages, at least 8, or "
              "fewer where they have more than 4 million actions; with --sweep as many as show a "
              "steady pace");
  line.output("trace", "FILE", "write a trace for chrome://tracing or Perfetto");
  line.option(
      "chakra", "FOLDER",
      "write an execution trace of MLCommons' Chakra for each worker, which ASTRA-sim reads: "
      "actions with their seconds, messages and reductions with their bytes");
  line.output("svg", "FILE",
              "draw, to scale, what every worker does in the first mini-batches and, where links "
              "are slow enough to be seen, below its lane what it sends");
  line.output("json", "FILE", "write all figures as JSON, memory over time included");
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
