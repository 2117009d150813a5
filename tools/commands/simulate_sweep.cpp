// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/simulate_sweep.h"

#include <cstdio>
#include <thread>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/planning/best_points.h"
#include "core/planning/print_points.h"
#include "core/simulation/shipped_hardware.h"
#include "core/sweep/sweep_simulation.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

int jobs_of(const CommandLine& line) {
  if (!line.given("jobs"))
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = line.integer("jobs");
  if (jobs < 1 || jobs > 1024)
    throw Error(ErrorKind::Experiment, concat("--jobs is ", jobs, "; expected 1 to 1024"));
  return jobs;
}

SimulatedSweep simulated(const CommandLine& line, const Value& document) {
  StatusLine status(stderr);
  return simulate_sweep(document, {.hardware = hardware_file(line.text("hardware")),
                                   .costs = cost_files(line),
                                   .minibatches = given_minibatches(line),
                                   .jobs = jobs_of(line),
                                   .progress = [&](std::size_t done) {
                                     if (done % 10 == 0)
                                       status.show(concat("simulated ", counted(done, "point")));
                                   }});
}

void write_files(const CommandLine& line, const SimulatedSweep& sweep, const BestPoints& best) {
  if (line.given("csv")) write_output(line.text("csv"), sweep_csv(sweep, best));
  if (line.given("json")) write_output(line.text("json"), to_json(sweep_value(sweep, best)) + "\n");
  if (line.given("svg"))
    write_output(line.text("svg"),
                 render_best_map(sweep, best, concat(sweep.name, ": the fastest scheme")));
}

}  // namespace

void declare_sweep_options(CommandLine& line) {
  line.flag("sweep",
            "simulate every point of the file's sweep, which may vary hardware.… too, and name the "
            "fastest for each bandwidth and number of workers; --svg then draws them as a map");
  line.option("jobs", "N", "with --sweep: threads; default: the machine's cores");
  line.option("x", "KEY",
              "with --sweep: the key of the map's columns; default: the bandwidth that varies");
  line.option("y", "KEY", "with --sweep: the key of its rows; default: workers");
  line.output("csv", "FILE", "with --sweep: write all points as CSV");
}

CostFiles cost_files(const CommandLine& line) {
  return {.table = line.text("costs"),
          .profile = line.text("profile-file"),
          .other_device = line.given("other-device"),
          .experiment = line.text("FILE")};
}

int given_minibatches(const CommandLine& line) {
  if (!line.given("minibatches")) return 0;
  const int given = line.integer("minibatches");
  if (given < 1)
    throw Error(ErrorKind::Experiment, concat("--minibatches is ", given, "; expected at least 1"));
  return given;
}

void refuse_sweep_options(const CommandLine& line) {
  line.refuse_given({"jobs", "x", "y", "csv"}, "needs --sweep");
}

int run_simulated_sweep(const CommandLine& line) {
  line.refuse_given({"point", "trace", "chakra"},
                    "is for one experiment, and --sweep simulates all points");
  const Value document = line.experiment_arguments().document();
  best_points(unsimulated_sweep(document), line.text("x"), line.text("y"));  // wrong axes fail now
  const SimulatedSweep sweep = simulated(line, document);
  const std::size_t refused = sweep.count(SimulatedPoint::State::Refused);
  if (refused == sweep.points.size())
    throw Error(ErrorKind::Experiment,
                concat("none of the ", counted(refused, "point"),
                       " can be simulated; the first: ", sweep.points.front().reason));
  const BestPoints best = best_points(sweep, line.text("x"), line.text("y"));
  for (const std::string& origin : sweep.costs_from) print("times: %s\n", origin.c_str());
  print("%s", sweep_text(sweep, best).c_str());
  write_files(line, sweep, best);
  return 0;
}

}  // namespace pipewright
