// SPDX-License-Identifier: Apache-2.0
// `pipewright schedule`: draws when each action happens, and with which weights.
#include <unistd.h>

#include <cstdio>

#include "core/base/error.h"
#include "core/drawing/render.h"
#include "core/experiment/experiment.h"
#include "core/schedule/remarks.h"
#include "core/schedule/schedule_size.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/drawing_title.h"

namespace pipewright {
namespace {

/// File name of the second drawing: "x-weights.svg" beside "x.svg".
std::filesystem::path beside(const std::filesystem::path& svg) {
  return svg.parent_path() / concat(svg.stem().string(), "-weights", svg.extension().string());
}

/// Refuses to write another file in the place of the second drawing.
void check_beside(const CommandLine& line) {
  if (!line.given("svg")) return;
  const auto place = [](const std::filesystem::path& file) {
    return std::filesystem::absolute(file).lexically_normal();
  };
  const std::filesystem::path second = beside(line.text("svg"));
  for (const char* name : {"csv", "pytorch-csv", "trace"})
    if (line.given(name) && place(line.text(name)) == place(second))
      throw Error(ErrorKind::Experiment,
                  concat("is given to --", std::string_view(name),
                         ", and --svg writes its second drawing there; give another name"),
                  second.string());
}

/// What `scheme: {name: csv_schedule}` has to know of a file with this schedule. Rates that rules
/// change stay out of the file, because the experiment that trains it has the rules.
void write_csv(const Experiment& experiment, int minibatches, const std::string& file) {
  const PipelineShape shape = experiment.shape(minibatches);
  const ProvedSchedule proved = prove_for_eyes(experiment.schedule_without_rules(shape));
  write_output(file, render_csv(proved));
  for (const NamedGradientRule& each : experiment.gradient_rules)
    if (each.rule->changes_lr())
      print(
          "\nnote: %s is without the factors of %s; an experiment that trains it has them from "
          "its own gradient_rules\n",
          file.c_str(), each.name.c_str());
  const TrainOptions& train = experiment.train;
  const bool drains_within = !train.checkpoint_unit_epoch && train.checkpoint_every > 0;
  const int later = drains_within ? train.checkpoint_every : minibatches;
  if ((drains_within || train.epochs != 1) &&
      experiment.schedule_without_rules(experiment.shape(minibatches, later)).workers !=
          proved.schedule.workers)
    print(
        "\nnote: this schedule changes as the training goes on, and each %s begins %s anew, so "
        "that training the file is another training from the second %s on\n",
        drains_within ? "drain for a checkpoint" : "epoch", file.c_str(),
        drains_within ? "part" : "epoch");
}

int run_schedule(const std::vector<std::string>& arguments) {
  CommandLine line(
      kSchedule,
      "Prints the schedule of an experiment: the grid of every worker, the version of the weights "
      "each pass reads, staleness and copies held per stage; draws it on request.");
  line.experiment(false);
  line.point();
  line.option("minibatches", "N", "how many mini-batches to show", "8");
  line.option("minibatch", "M",
              "with --svg: the mini-batch (from 0) whose weights are drawn; default: one in the "
              "steady state");
  line.output(
      "svg", "FILE",
      "draw the grid there, and beside it, in a file whose name ends in -weights, the weights that "
      "one mini-batch uses");
  line.output("csv", "FILE", "write every action, one a line, to this CSV file");
  line.output(
      "pytorch-csv", "FILE",
      "write one mini-batch in the format of torch.distributed.pipelining (synchronous schemes)");
  line.output("trace", "FILE", "write a trace for chrome://tracing or Perfetto");
  if (!line.parse(arguments)) return 0;
  check_beside(line);
  const Experiment experiment = experiment_of(line);
  const int minibatches = line.integer("minibatches");
  if (minibatches < 1)
    throw Error(ErrorKind::Experiment,
                concat("--minibatches is ", minibatches, "; expected at least 1"));
  check_schedule_size(experiment.shape(minibatches), minibatches, kBytesOfProved);
  const ProvedSchedule proved = prove_for_eyes(experiment.schedule(minibatches));
  const int width = ::isatty(STDOUT_FILENO) != 0 ? static_cast<int>(terminal_width(stdout)) : 0;
  print_colored(
      render_text(proved.schedule,
                  {.width = width, .minibatches = minibatches, .color = takes_escapes(stdout)}));
  print("\n%s", render_versions(proved, minibatches).c_str());
  std::vector<std::string> remarks{experiment.scheme->remark(),
                                   idle_remark(*experiment.scheme, experiment.shape(1))};
  for (const ScheduleRewrite& rewrite : experiment.pipeline.rewrites)
    remarks.push_back(rewrite.remark(proved.schedule));
  remarks.push_back(update_remark(proved));
  remarks.push_back(lent_remark(proved));
  for (const std::string& remark : remarks)
    if (!remark.empty()) print("\nnote: %s\n", remark.c_str());
  if (line.given("svg")) {
    const std::filesystem::path svg = line.text("svg");
    const int shown = line.given("minibatch")
                          ? line.integer("minibatch")
                          : std::min(minibatches - 1, experiment.pipeline.stages - 1);
    if (shown < 0 || shown >= minibatches)
      throw Error(ErrorKind::Experiment,
                  concat("--minibatch is ", shown, "; expected 0 to ", minibatches - 1,
                         ", as --minibatches is ", minibatches));
    write_output(svg, render_svg(proved, drawing_title(experiment), minibatches));
    write_output(beside(svg), render_weights_svg(proved, shown, drawing_title(experiment)));
  }
  if (line.given("csv")) write_csv(experiment, minibatches, line.text("csv"));
  if (line.given("pytorch-csv")) write_output(line.text("pytorch-csv"), render_pytorch_csv(proved));
  if (line.given("trace")) write_output(line.text("trace"), render_trace(proved));
  return 0;
}

}  // namespace

const Command kSchedule{
    "schedule",
    "schedule FILE [--svg F] [--csv F] [--pytorch-csv F] [--trace F] [--set key=value]…",
    "what happens when, and with which weights", run_schedule};

}  // namespace pipewright
