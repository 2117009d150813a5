// SPDX-License-Identifier: Apache-2.0
// `pipewright profile`: measures or counts the costs of each layer of a model.
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "core/cost/pipedream_partition.h"
#include "core/drawing/render_profile.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/measured_balance.h"
#include "core/measuring/measured_layout.h"
#include "core/measuring/profiling.h"
#include "core/runtime/devices/device.h"
#include "core/simulation/shipped_hardware.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

at::Device device_named(const std::string& name) {
  if (name == "meta") return at::kMeta;
  const bool numbered = name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name != "cpu" && name != "cuda" && !numbered)
    throw Error(ErrorKind::Experiment,
                concat("--device is '", name, "'; expected meta, cpu, cuda or cuda:<number>"));
  return resolve_devices({name}, "--device").front();
}

void print_cut(const Experiment& e, const Profile& profile, int stages) {
  const CutRules rules = cut_rules(e, stages);
  const StageMemories memories = stage_memories(e, profile, stages);
  const auto cut = best_cut(profile, memories, rules);
  std::vector<std::string> list;
  for (const std::int64_t layers : cut) list.push_back(std::to_string(layers));
  print("\nbalance: [%s]\n\n%s", join(list, ", ").c_str(),
        render_cut(profile, memories, rules, cut).c_str());
}

/// Reads the levels of --workers such as "4@12e9,2@1e9", the innermost first; none where it is not
/// given. Links of a level without "@" take no time.
std::vector<WorkerLevel> read_levels(const CommandLine& line) {
  const std::string text = line.text("workers");
  if (text.empty()) return {};
  std::vector<WorkerLevel> levels;
  for (const std::string& part : split(text, ',')) {
    const std::size_t at = part.find('@');
    const Value units = parse_scalar(part.substr(0, at), "--workers");
    const Value bandwidth =
        at == std::string::npos ? Value() : parse_scalar(part.substr(at + 1), "--workers");
    const double speed = bandwidth.is(Value::Kind::Integer) ? static_cast<double>(bandwidth.integer)
                                                            : bandwidth.number;
    const bool fast = at == std::string::npos || (speed > 0 && std::isfinite(speed));
    if (!units.is(Value::Kind::Integer) || units.integer < 1 || units.integer > 4096 || !fast)
      throw Error(ErrorKind::Experiment,
                  concat("--workers is '", text,
                         "'; expected units and bytes a second of each level, the innermost "
                         "first, as in 4@12e9,2@1e9"));
    WorkerLevel& level = levels.emplace_back(WorkerLevel{static_cast<int>(units.integer)});
    if (at != std::string::npos) level.bandwidth = speed;
  }
  return levels;
}

/// The devices of each host and the hosts, with the bandwidths of their links.
std::vector<WorkerLevel> levels_of(const Hardware& hardware) {
  const int devices = static_cast<int>(hardware.devices.size());
  const int each = hardware.devices_per_host > 0 ? hardware.devices_per_host : devices;
  std::vector<WorkerLevel> levels{{each, hardware.within.bandwidth}};
  if (each < devices) levels.push_back({devices / each, hardware.between.bandwidth});
  return levels;
}

/// How PipeDream's plan counts, as the command line says. Throws Error{Experiment}.
PipeDreamRules read_rules(const CommandLine& line) {
  PipeDreamRules rules{.levels = read_levels(line)};
  if (line.text("cost") == "code")
    rules.cost = PipeDreamRules::Cost::Code;
  else if (line.text("cost") != "paper")
    throw Error(ErrorKind::Experiment,
                concat("--cost is '", line.text("cost"), "'; expected paper or code"));
  return rules;
}

void print_pipedream(const CommandLine& line, const Experiment& experiment, const Profile& profile,
                     PipeDreamRules rules) {
  rules.microbatches = experiment.pipeline.microbatches * experiment.pipeline.replicas;
  print("\nPipeDream's plan, costs as in its %s:\n\n%s", line.text("cost").c_str(),
        render_plan(profile, pipedream_partition(profile, rules)).c_str());
}

/// For --hardware: the best cut and PipeDream's plan by operations and bytes at the rates of a
/// machine that need not be here. Nothing is measured, so no profile is written.
int plan_on(const CommandLine& line, const Experiment& experiment, int stages,
            PipeDreamRules rules) {
  line.refuse_given({"device", "out", "repetitions", "seconds"},
                    "is for what is measured here, and --hardware counts");
  const Hardware hardware = HardwareSource(hardware_file(line.text("hardware")))
                                .of(experiment.given, experiment.shape(1));
  const Profile profile = CostSource({}).counted_on(experiment, hardware);
  print("times: %s\n", counted_from(hardware, experiment.train.precision.name).c_str());
  if (stages > 1) print_cut(experiment, profile, stages);
  if (rules.levels.empty()) rules.levels = levels_of(hardware);
  print_pipedream(line, experiment, profile, std::move(rules));
  return 0;
}

int run_profile(const std::vector<std::string>& arguments) {
  CommandLine line(
      kProfile,
      "Measures what each layer of the model costs, with the experiment's micro-batch size, "
      "precision, threads, loss and optimizer, on made-up samples: times are medians, memory is "
      "counted by LibTorch's allocator. On the device `meta` only bytes and operations are "
      "counted, without memory for them: enough for balance: memory. Writes a profile that "
      "balance: time and memory and `pipewright simulate` read.\n\n"
      "With --hardware nothing is measured or written: times follow from operations and bytes at "
      "the rates of that machine, and the best cut and PipeDream's plan for its hosts and devices "
      "are shown.");
  line.experiment(false);
  line.point();
  line.option("device", "NAME",
              "measure on meta, cpu, cuda or cuda:<number>; default: the experiment's device");
  line.option("out", "FILE", "write the profile there", "profile.yaml");
  line.option("repetitions", "N",
              "measurements of each layer; 0 = as many as --seconds allow, 3 to 50", "0");
  line.option("seconds", "S", "about how many seconds to measure, all layers together", "20");
  line.option("stages", "N",
              "show the best cut into this number of stages; default: the experiment's");
  line.option(
      "workers", "LEVELS",
      "show PipeDream's plan for these workers: of each level, the innermost first, how many "
      "units and the bytes a second of their links; 4@12e9,2@1e9 is two hosts of four");
  line.option("hardware", "FILE",
              "plan for this description of a machine instead: a file, or a name of `list "
              "hardware`; --workers then names other levels than its own");
  line.option(
      "cost", "FORM",
      "with --workers or --hardware, costs as in PipeDream's paper or in its code: paper or code",
      "paper");
  if (!line.parse(arguments)) return 0;
  const PipeDreamRules rules = read_rules(line);
  Experiment experiment = experiment_of(line, need_libtorch);
  const int stages = line.given("stages") ? line.integer("stages") : experiment.pipeline.stages;
  if (stages < 1 || stages > std::ssize(experiment.layers))
    throw Error(ErrorKind::Experiment,
                concat("--stages is ", stages, "; the model has ", experiment.layers.size(),
                       " layers, and a stage holds at least one"));
  if (line.given("hardware")) return plan_on(line, experiment, stages, rules);
  ProfileSettings settings{
      .device = device_named(line.given("device") ? line.text("device")
                                                  : experiment.pipeline.devices.front()),
      .repetitions = line.integer("repetitions"),
      .seconds = static_cast<double>(line.integer("seconds"))};
  if (settings.repetitions < 0 || settings.seconds < 0)
    throw Error(ErrorKind::Experiment, "--repetitions and --seconds are at least 0");
  if (line.given("workers") && settings.device.is_meta())
    throw Error(ErrorKind::Experiment,
                "--workers shows a plan by measured times, but --device meta measures none; give "
                "another device, or --hardware");
  if (!settings.device.is_meta()) {  // counted bytes are the same in both formats
    const auto tell = [](const std::string& text) { print_error("%s\n", text.c_str()); };
    Team alone;
    experiment =
        experiment.with(settle_memory_format(experiment, {.runs = "runs", .tell = tell}, alone));
  }
  StatusLine status(stderr);
  settings.on_layer = [&](std::size_t layer) {
    status.show(concat("layer ", layer + 1, " of ", experiment.layers.size(), ", ",
                       experiment.layers[layer]->name()));
  };
  line.check_outputs({"out"});
  std::string scatter;
  settings.tell = [&](const std::string& text) { scatter = text; };
  const Profile profile = measure(experiment, settings);
  status.clear();
  if (!scatter.empty()) print_error("warning: %s\n", scatter.c_str());
  print("%s", render_profile(profile).c_str());
  const bool by_memory = experiment.measured_balance && experiment.measured_balance->by_memory;
  if (stages > 1 && (profile.timed || by_memory)) print_cut(experiment, profile, stages);
  if (line.given("workers")) print_pipedream(line, experiment, profile, rules);
  print("\n");
  write_output(line.text("out"), to_yaml(profile_value(profile)));
  return 0;
}

}  // namespace

const Command kProfile{"profile",
                       "profile FILE [--device D | --hardware H] [--out F] [--set key=value]…",
                       "measure what each layer costs", run_profile};

}  // namespace pipewright
