// `pipewright simulate`: how long a schedule would take on given hardware, and what it would hold.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/terminal.h"
#include "core/experiment/crossing.h"
#include "core/experiment/experiment.h"
#include "core/experiment/measured_balance.h"
#include "core/experiment/modelled.h"
#include "core/experiment/profiling.h"
#include "core/schedule/cost_table.h"
#include "core/schedule/render.h"
#include "core/schedule/render_simulation.h"
#include "core/schedule/validate.h"
#include "tools/command.h"

namespace pipewright {
namespace {

constexpr const char* kProfileFile = "profile.yaml";  // where `pipewright profile` leaves one

std::vector<StageCost> costs_of_table(const std::string& file, int stages) {
  Problems problems;
  const Value document = load_yaml(file, problems);
  CostTable table = read_cost_table(document, stages, problems);
  problems.throw_if_any();
  return std::move(table.stages);
}

std::vector<StageCost> costs_of_profile(const std::string& file, const Experiment& experiment) {
  Profile profile = read_profile(load_yaml(file));
  if (!profile.timed)
    throw Error(ErrorKind::Experiment,
                "it was counted on the device meta and has no times; `pipewright profile FILE "
                "--device cpu` or cuda measures them",
                file);
  std::vector<StageCost> costs = stage_costs(profile, experiment.balance);
  profile.device =
      described(experiment, at::kCPU).device;  // any device will do: hardware says which
  if (const std::string why = misfit(profile, experiment, at::kCPU); !why.empty())
    throw Error(ErrorKind::Experiment,
                concat("this profile does not fit: ", why, "; `pipewright profile FILE` makes one"),
                file);
  return costs;
}

/// What the stages cost where no profile says it: operations and bytes, at the hardware's rates.
std::vector<StageCost> counted_costs(const Experiment& experiment, const Hardware& machine) {
  print("No profile: times are operations and bytes at the rates of %s.\n\n", machine.name.c_str());
  return stage_costs(counted_profile(experiment, machine), experiment.balance);
}

std::vector<StageCost> costs(const CommandLine& line, const Experiment& experiment,
                             const Hardware& machine) {
  if (line.given("costs") && line.given("profile-file"))
    throw Error(ErrorKind::Experiment, "--costs and --profile-file exclude each other");
  if (line.given("costs")) return costs_of_table(line.text("costs"), experiment.pipeline.stages);
  if (line.given("profile-file")) return costs_of_profile(line.text("profile-file"), experiment);
  if (std::filesystem::exists(kProfileFile)) return costs_of_profile(kProfileFile, experiment);
  if (machine.rates.known()) return counted_costs(experiment, machine);
  throw Error(
      ErrorKind::Experiment,
      concat("what the stages cost is not known: `pipewright profile ", line.text("FILE"),
             "` measures it and writes ", kProfileFile,
             ", which is read from here; or write --costs, or give --hardware that says its "
             "teraflops"));
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

/// When the first mini-batches are done, so many that their bars can be told apart.
double drawn_until(const Schedule& schedule, const Simulation& simulation) {
  constexpr int kBars = 50;
  const int each = 2 * schedule.shape.microbatches + 1;
  const int shown = std::clamp(kBars / each, 1, schedule.shape.minibatches);
  return simulation.minibatch_ends[static_cast<std::size_t>(shown - 1)];
}

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSimulate,
      "Runs an experiment's schedule in virtual time: makespan and bubble, how busy each worker "
      "and link is, samples a second, and the memory of each worker at its peak. What the stages "
      "cost comes from a profile (`pipewright profile`) or a table, or is counted: operations and "
      "bytes at the rates of the hardware; what they run on from a description like those in "
      "experiments/hardware.");
  line.experiment(false);
  line.option("hardware", "FILE", "devices and links; default: equal devices, free transfers");
  line.option("profile-file", "FILE", "a profile; default: profile.yaml, if it is there");
  line.option("costs", "FILE",
              "instead of a profile, a YAML mapping: forward, backward, update, … in seconds, "
              "activation_bytes, … of a micro-batch; a number, or a list with one per stage");
  line.option("minibatches", "N", "mini-batches; default: four times the stages, at least 8");
  line.option("trace", "FILE", "write a trace for chrome://tracing or Perfetto");
  line.option("svg", "FILE",
              "draw what every worker does when, to scale, the first mini-batches of it");
  line.option("json", "FILE", "write all figures, memory over time included");
  if (!line.parse(arguments)) return 0;
  const Experiment experiment = experiment_of(line);
  const Schedule schedule = experiment.schedule(minibatches(line, experiment));
  validate(schedule);
  const Hardware machine = hardware(line, static_cast<int>(schedule.workers.size()));
  std::vector<StageCost> stages = costs(line, experiment, machine);
  const std::vector<std::string> untimed = compress(stages, experiment, machine);
  const Simulation simulation =
      simulate(schedule, stages, machine,
               {.memory_over_time = line.given("json"),
                .optimizer_state = static_cast<double>(optimizer_slots(experiment, schedule))});
  const std::int64_t samples = experiment.loader.batch_size;
  print("%s: %s", experiment.name.c_str(),
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
    write_output(line.text("svg"), render_timeline_svg(schedule, simulation, experiment.name,
                                                       drawn_until(schedule, simulation)));
  if (line.given("json"))
    write_output(line.text("json"),
                 to_json(simulation_value(schedule, machine, simulation, samples)) + "\n");
  return 0;
}

}  // namespace

const Command kSimulate{
    "simulate", "simulate FILE [--hardware H.yaml] [--profile-file P | --costs C.yaml] [--svg F]…",
    "how long it would take on given hardware, and what it would hold", run};

}  // namespace pipewright
