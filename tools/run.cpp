// `pipewright run`: trains one experiment.
#include <cstdio>

#include "core/base/error.h"
#include "core/experiment/experiment.h"
#include "core/experiment/plugins.h"
#include "core/experiment/run.h"
#include "core/experiment/run_folder.h"
#include "tools/command.h"
#include "tools/interrupt.h"

namespace pipewright {
namespace {

int run(const std::vector<std::string>& arguments) {
  CommandLine line(
      kRun,
      "Trains one experiment and leaves experiment.yaml, run.json, steps.csv, epochs.csv and "
      "final.safetensors in its folder. The `sweep` of the file is left out: see `pipewright "
      "sweep`.");
  line.experiment(true);
  line.flag("resume", "go on at the last checkpoint of the folder; a finished run is left alone");
  line.flag("overwrite", "begin anew in a folder that holds a run");
  line.flag("quiet", "print nothing but errors");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  Problems faults;
  const Value document = given.document(faults);
  Experiment experiment = read_experiment(document, faults);
  const std::filesystem::path out =
      given.out.empty() ? std::filesystem::path("runs") / experiment.name : given.out;
  const RunChoices choices{.resume = line.given("resume"),
                           .overwrite = line.given("overwrite"),
                           .quiet = line.given("quiet")};
  try {
    Team team;
    run_experiment(experiment, out, choices, team, interrupt_flag());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted)
      throw Error(
          ErrorKind::Interrupted,
          concat("interrupted; `pipewright run ", given.file.string(), " --out ", out.string(),
                 plugin_words(), " --resume` goes on at the last finished epoch"));
    throw;
  }
  if (!choices.quiet)
    std::fprintf(stderr, "%s: done, see %s\n", experiment.name.c_str(), out.c_str());
  return 0;
}

}  // namespace

const Command kRun{"run",
                   "run FILE [--set key=value]… [--profile P] [--out DIR] [--resume | --overwrite]",
                   "train one experiment", run};

}  // namespace pipewright
