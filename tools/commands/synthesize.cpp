// SPDX-License-Identifier: Apache-2.0
// `pipewright synthesize`: searches for the fastest schedule within limits of memory and staleness.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string_view>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/drawing/render.h"
#include "core/drawing/render_simulation.h"
#include "core/experiment/experiment.h"
#include "core/experiment/reading.h"
#include "core/measuring/codec_costs.h"
#include "core/measuring/cost_source.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/steady_simulation.h"
#include "core/schedule/builders.h"
#include "core/schedule/schedule_size.h"
#include "core/simulation/shipped_hardware.h"
#include "core/simulation/simulate.h"
#include "core/synthesis/memory_curve.h"
#include "core/synthesis/placement_search.h"
#include "core/synthesis/schedule_search.h"
#include "core/synthesis/search_text.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/commands/simulate_sweep.h"
#include "tools/interrupt.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::Experiment, message);
}

/// A number from `least` to `most` with one of these units, or without one.
double positive(const CommandLine& line, const std::string& name,
                std::initializer_list<std::pair<const char*, double>> units, const char* expected,
                double least, double most) {
  std::string text = line.text(name);
  double factor = 1;
  for (const auto& [unit, times] : units)
    if (text.ends_with(unit)) {
      text.resize(text.size() - std::string_view(unit).size());
      factor = times;
      break;
    }
  const Value value = parse_scalar(text, "--" + name);
  const double number =
      value.is(Value::Kind::Integer) ? static_cast<double>(value.integer) : value.number;
  const bool is_number = value.is(Value::Kind::Integer) || value.is(Value::Kind::Number);
  const bool in_range = number > 0 && number * factor >= least && number * factor <= most;
  if (!is_number || !in_range)
    refuse(concat("--", name, " is '", line.text(name), "'; expected ", expected));
  return number * factor;
}

int whole(const CommandLine& line, const std::string& name, int least) {
  const int given = line.integer(name);
  if (given < least) refuse(concat("--", name, " is ", given, "; expected at least ", least));
  return given;
}

constexpr const char* kFree = "free";

/// The worker of each stage if stages go round the workers, or up and down them. A free placement
/// goes round them until it is searched.
std::vector<int> placement(const std::string& kind, int stages, int workers) {
  if (kind != "loop" && kind != "v" && kind != kFree)
    refuse(concat("--placement is '", kind,
                  "'; expected loop (stage s on worker s mod p), v (up to the last worker and down "
                  "again) or free (any that is faster)"));
  if (kind == kFree && workers > stages)
    refuse(concat("--workers is ", workers, ", and there are ", counted(stages, "stage"),
                  "; expected at most as many workers as stages"));
  if (kind != kFree && stages % workers != 0)
    refuse(concat("--workers is ", workers, ", of which ", counted(stages, "stage"),
                  " cannot have equally many each; expected a divisor of ", stages));
  return kind == "v" ? folded_placement(stages, workers) : round_placement(stages, workers);
}

/// Where mini-batches overlap, S + 1 of them repeat themselves; a pipeline is full with no more
/// than two for each stage.
int minibatches(const CommandLine& line, int stages) {
  if (line.given("minibatches")) return whole(line, "minibatches", 4);
  constexpr int kLeast = 24, kBunches = 12;
  return std::max(kLeast, kBunches * (std::min(whole(line, "staleness", 0), 2 * stages) + 1));
}

PipelineShape shape_of(const CommandLine& line, const Experiment& experiment) {
  PipelineShape shape = experiment.shape(minibatches(line, experiment.pipeline.stages));
  if (shape.replicas > 1)
    refuse(concat("pipeline.replicas is ", shape.replicas,
                  "; a search is for one pipeline, and its order serves all replicas; expected 1"));
  for (const ScheduleRewrite& rewrite : experiment.pipeline.rewrites)
    refuse(concat(rewrite.option, " is set; a search plans nothing of the kind; expected never"));
  if (shape.slices > 1)
    refuse(concat("pipeline.slices is ", shape.slices,
                  "; a search orders whole micro-batches; expected 1"));
  if (line.given("pytorch-csv") && line.integer("staleness") > 0)
    refuse(
        "--pytorch-csv is for one mini-batch of a synchronous schedule, and --staleness lets "
        "mini-batches overlap; expected --csv, which csv_schedule reads, too");
  if (line.given("placement") != line.given("workers"))
    refuse("--placement and --workers need each other");
  if (line.given("placement"))
    shape.placement = placement(line.text("placement"), shape.stages, whole(line, "workers", 1));
  constexpr std::size_t kBytesOfSearched = 400;  // measured: 370 to 410 an action
  check_schedule_size(shape, shape.minibatches, kBytesOfSearched);
  return shape;
}

double memory(const CommandLine& line) {
  return positive(line, "memory", {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}},
                  "bytes from 1 to 2^60, such as 12e9 or 12GiB", 1, 0x1p60);
}

ScheduleLimits limits_of(const CommandLine& line, const Experiment& experiment,
                         const PipelineShape& shape, const Hardware& hardware,
                         const SourcedCosts& costs) {
  ScheduleLimits limits;
  if (line.given("live") && line.given("memory")) refuse("--live and --memory exclude each other");
  if (line.given("live")) limits.live = whole(line, "live", 1);
  limits.staleness = whole(line, "staleness", 0);
  const Holdings held = experiment.holdings(pipeline_schedule(shape, {}));
  limits.optimizer_state = held.slots();
  limits.optimizer_tables = tables_in_costs(held.table_bytes(experiment.stage_layers_and_heads()),
                                            experiment, costs.stages);
  limits.fixed = experiment.fixed_bytes();
  const auto workers = static_cast<std::size_t>(shape.workers_per_replica());
  if (line.given("memory"))
    limits.memory.assign(workers, static_cast<std::int64_t>(memory(line)));
  else if (!line.given("live") && workers <= hardware.devices.size() &&
           hardware.devices.front().memory > 0)
    for (std::size_t worker = 0; worker < workers; ++worker)
      limits.memory.push_back(hardware.devices[worker].memory);
  return limits;
}

/// Ends the search after so many seconds of a clock that never goes back, or at a signal.
std::function<bool()> timer(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  return [end, interrupted = interrupt_flag()] { return *interrupted || Clock::now() >= end; };
}

double within(const CommandLine& line) {
  constexpr double kMost = 1e9;  // a clock counts nanoseconds in 63 bits
  return positive(line, "within", {{"s", 1}, {"min", 60}}, "a time up to 1e9s, such as 30s or 2min",
                  0, kMost);
}

SynthesisSettings settings_of(const CommandLine& line) {
  within(line);  // refuses what is no time before anything is counted
  return {.tries = whole(line, "tries", 1),
          .seed = static_cast<std::uint64_t>(whole(line, "seed", 0))};
}

void declare_synthesis_options(CommandLine& line) {
  line.experiment(false);
  line.point();
  line.option("memory", "BYTES",
              "the memory of each worker, such as 12e9 or 12GiB; default: that of its device, if "
              "the hardware says it");
  line.option("live", "N",
              "limits forwards in the place of bytes: a worker holds at most N of them whose "
              "backward has not ended");
  line.option("staleness", "S",
              "allows S updates between a forward and the update that applies its gradient", "0");
  line.option("placement", "KIND",
              "puts several stages on each of --workers: loop (stage s is on worker s mod p), v "
              "(stages go up to the last worker and down again) or free (whichever placement is "
              "found to be the fastest); default: pipeline.placement");
  line.option("workers", "P",
              "the number of workers for --placement; the number of stages must be a multiple, but "
              "for a free one");
  line.option("within", "TIME",
              "ends a search after this time, such as 30s or 2min; --curve makes a search for "
              "each row",
              "10s");
  line.option("tries", "N",
              "ends a search after N changes of an order; a search that ends so gives the same "
              "result on every machine",
              "1000000");
  line.option("seed", "N", "the seed of the random changes", "1");
  line.option("minibatches", "N",
              "the number of mini-batches of the schedule; default: 24, or 12 (S + 1) if that is "
              "more");
  line.option("hardware", "FILE",
              "a description of devices and links, or the name of one of `list hardware`; "
              "default: hardware.file");
  line.option("profile-file", "FILE", "a profile of the model, which says what layers cost");
  line.flag("other-device", "allows a profile that was measured on other devices");
  line.option("costs", "FILE", "a table of what stages cost, in the place of a profile");
  line.output("csv", "FILE",
              "writes every action to this CSV file, which csv_schedule reads, one a line");
  line.output("pytorch-csv", "FILE",
              "writes one mini-batch in the format of torch.distributed.pipelining, which "
              "csv_schedule reads, too; not with --staleness");
  line.output("svg", "FILE", "draws, to scale, what every worker does in the first mini-batch");
  line.output("json", "FILE", "writes the figures as JSON");
  line.output("curve", "FILE",
              "searches once for each limit of live forwards, from the least to the one beyond "
              "which nothing is faster, and for each staleness up to --staleness; writes memory, "
              "bubble and pace of each to this CSV file");
}

/// What a search is for.
struct Request {
  Experiment experiment;
  PipelineShape shape;
  Hardware hardware;
  SourcedCosts costs;
  ScheduleLimits limits;
  SynthesisSettings settings;
};

Request read_request(const CommandLine& line) {
  Problems faults;
  const OneExperiment one = one_experiment(line.experiment_arguments(), faults);
  Request request{.experiment = read_experiment(one.document, faults)};
  request.shape = shape_of(line, request.experiment);
  request.settings = settings_of(line);
  need_libtorch();
  if (!one.remark.empty()) print_error("%s\n", one.remark.c_str());
  CostSource source(cost_files(line));
  request.hardware =
      HardwareSource(hardware_file(line.text("hardware"))).of(one.document, request.shape);
  check_devices(request.hardware, as_size(request.shape.workers_per_replica()));
  request.costs = source.of(request.experiment, request.hardware);
  request.experiment = request.experiment.with(request.costs.layout);
  account_for_codecs(request.costs.stages, request.experiment, edge_messages(request.experiment),
                     request.hardware,
                     source.is_table() ? MessageSizes::OfCosts : MessageSizes::OfModel);
  request.limits =
      limits_of(line, request.experiment, request.shape, request.hardware, request.costs);
  return request;
}

void print_request(const Request& request) {
  print("times: %s\n%s: %s on %s, %s%s\n", request.costs.from.c_str(),
        request.experiment.name.c_str(), counted(request.shape.stages, "stage").c_str(),
        counted(request.shape.workers_per_replica(), "worker").c_str(),
        counted_text(request.shape.microbatches, "micro-batch").c_str(),
        limits_text(request.limits).c_str());
}

void refuse_interrupted(const std::string& consequence) {
  if (*interrupt_flag()) throw Error(ErrorKind::Interrupted, "interrupted; " + consequence);
}

int print_curve(const CommandLine& line, Request& request) {
  line.refuse_given({"memory", "live", "csv", "pytorch-csv", "svg", "json"},
                    "is for one search, and --curve makes many");
  if (line.text("placement") == kFree)
    refuse("--placement is 'free'; expected loop or v with --curve, which is of one placement");
  line.check_outputs({"curve"});
  request.limits.memory.clear();
  print_request(request);
  const double seconds = within(line);
  const std::vector<CurvePoint> curve =
      memory_curve(request.shape, request.costs.stages, request.hardware, request.limits,
                   request.settings, [seconds] {
                     refuse_interrupted("no file is written");
                     return timer(seconds);
                   });
  refuse_interrupted("no file is written");
  print("%s", curve_text(curve).c_str());
  write_output(line.text("curve"), curve_csv(curve));
  return 0;
}

void write_files(const CommandLine& line, const Request& request, const SearchedSchedule& found) {
  if (line.given("csv")) write_output(line.text("csv"), render_csv(*found.proved));
  if (line.given("pytorch-csv"))
    write_output(line.text("pytorch-csv"), render_pytorch_csv(*found.proved));
  if (line.given("svg"))
    write_output(line.text("svg"), render_timeline_svg(found.proved->schedule, found.simulation,
                                                       request.experiment.name,
                                                       found.simulation.minibatch_ends.front()));
  if (line.given("json")) write_output(line.text("json"), to_json(search_value(found)) + "\n");
}

/// The first half of the time is for placements.
SearchedSchedule search_free(const CommandLine& line, Request& request) {
  PlacedSchedule placed = search_placements(request.shape, request.shape.workers_per_replica(),
                                            request.costs.stages, request.hardware, request.limits,
                                            request.settings, timer(within(line) / 2));
  print("%s", placement_text(placed).c_str());
  return std::move(placed.found);
}

int run_synthesize(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSynthesize,
      "Searches for the schedule with which a mini-batch takes least time in the steady state of "
      "the pipeline, within limits of memory and of the staleness of weights. The scheme of the "
      "experiment does not matter. The command prints the pace of the fastest schedule that it "
      "found, which `simulate` confirms, a bound that no schedule within the limits can beat (a "
      "line `scope` says of which schedules, if not of all), and the gap between them. It reads "
      "costs and hardware as `simulate` does. No built-in scheme with its default "
      "options that keeps to the limits is faster than the schedule that it prints, unless the "
      "time was up before all were looked at. Ctrl-C ends the search, and what was found is "
      "printed and written; with --curve nothing is.");
  declare_synthesis_options(line);
  if (!line.parse(arguments)) return 0;
  Request request = read_request(line);
  if (line.given("curve")) return print_curve(line, request);
  line.check_outputs({"csv", "pytorch-csv", "svg", "json"});
  print_request(request);
  request.settings.stop = timer(within(line));
  const bool free = line.text("placement") == kFree;
  const SearchedSchedule found =
      free ? search_free(line, request)
           : search_schedule(request.shape, request.costs.stages, request.hardware, request.limits,
                             request.settings);
  print("%s", search_text(found).c_str());
  write_files(line, request, found);
  refuse_interrupted("the order above is the fastest that was found until then");
  return 0;
}

}  // namespace

const Command kSynthesize{
    "synthesize",
    "synthesize FILE [--memory BYTES | --live N] [--staleness S] [--hardware H.yaml] [--csv F]…",
    "the fastest schedule that a search finds within limits, and a bound that none can beat",
    run_synthesize};

}  // namespace pipewright
