// SPDX-License-Identifier: Apache-2.0
// `pipewright export`: takes what runs have measured to other programs.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/exports/long_rows.h"
#include "core/exports/metric_rows.h"
#include "core/exports/run_events.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/terminal.h"
#include "tools/command.h"
#include "tools/report/sources.h"
#include "tools/results.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// nullopt: event files.
std::optional<LongFormat> export_format(const std::string& name) {
  if (name == "csv" || name == "long-csv") return LongFormat::Csv;
  if (name == "jsonl") return LongFormat::JsonLines;
  if (name == "tensorboard") return std::nullopt;
  throw Error(ErrorKind::Experiment,
              concat("--format is '", name, "'; expected csv, jsonl or tensorboard"));
}

/// The name of a folder that has none of its own, as "/" and "..".
std::string name_of(const fs::path& folder) {
  const std::string name = fs::weakly_canonical(folder).filename().string();
  return name.empty() ? "runs" : name;
}

bool has_begun(const RunRecord& record) {
  return record.state != "missing";
}

/// The runs of a file, and the folder that they lie in, or that one of them is.
std::pair<std::vector<RunRecord>, fs::path> runs_of_file(const ExperimentArguments& given) {
  const Value document = given.document();
  const fs::path folder = results_folder(given, document);
  std::vector<RunRecord> records = sweep_records(document, folder);
  require_begun(given, folder, records);
  return {std::move(records), folder};
}

/// The runs of one folder or file, named after their folders.
std::vector<ExportedRun> runs_of(const fs::path& source, const CommandLine& line,
                                 bool one_of_several) {
  std::error_code none;
  const bool of_folder = fs::is_directory(source, none);
  if (of_folder)
    line.refuse_given({"set", "profile", "out"},
                      "needs the experiment's file in the place of a folder of its runs");
  auto [records, sweep] = of_folder ? std::pair(runs_of_folder(source), source)
                                    : runs_of_file({.file = source,
                                                    .profile = line.text("profile"),
                                                    .sets = line.texts("set"),
                                                    .out = line.text("out")});
  std::vector<ExportedRun> runs;
  for (RunRecord& record : records) {
    if (!has_begun(record)) continue;
    if (record.state == "failed") check_files(record);
    const std::string name = name_of(record.folder);
    const bool within = one_of_several && !fs::equivalent(sweep, record.folder, none);
    runs.push_back({within ? concat(name_of(sweep), "/", name) : name, std::move(record)});
  }
  return runs;
}

void check_names(const std::vector<ExportedRun>& runs) {
  std::set<std::string> names;
  for (const ExportedRun& run : runs)
    if (!names.insert(run.name).second)
      throw Error(ErrorKind::Experiment, concat("two of the exported runs are called ", run.name,
                                                "; export them one after the other"));
}

int run_export(const std::vector<std::string>& arguments) {
  CommandLine line(
      kExport,
      "Takes what runs have measured to other programs: every column of epochs.csv, the loss of "
      "every mini-batch where the run wrote steps.csv, evaluations inside the training, and what "
      "probes measured. csv is one long "
      "table, a row for each number: run, label, state, the settings in which the runs differ, "
      "epoch, step (the mini-batch within the epoch; empty for numbers of an epoch), metric and "
      "value. jsonl has the same rows as JSON objects, one a line. tensorboard writes an event "
      "file for each run into a folder of its own; `tensorboard --logdir PATH` shows them: "
      "loss/train, accuracy/test and so on over epochs, loss_per_step/train and probes over "
      "mini-batches. Runs that have not ended are exported as far as they have come.");
  line.positional("SOURCE", "the folder of a run or of a sweep, or an experiment's file", 1, 1000);
  line.option("format", "F", "csv (or long-csv), jsonl or tensorboard", "csv");
  line.option("output,o", "PATH",
              "the file to write or, with tensorboard, the folder, which is made if it is missing");
  line.option("out", "DIR", "the folder of the file's results; default: runs/<name>");
  line.list("set", "KEY=VALUE", "as in the sweep of the file");
  line.option("profile", "P", "as in the sweep of the file");
  line.plugins();
  line.where();
  if (!line.parse(arguments)) return 0;
  const std::optional<LongFormat> format = export_format(line.text("format"));
  const fs::path output = line.text("output");
  if (output.empty())
    throw Error(ErrorKind::Experiment, "--output is missing; expected where the export is written");
  const std::vector<std::string> sources = line.texts("SOURCE");
  if (sources.size() > 1)
    line.refuse_given({"out"}, "is the folder of one file's results; give that folder as a SOURCE");
  std::vector<ExportedRun> runs;
  for (const std::string& source : sources)
    std::ranges::move(runs_of(run_in(source, line), line, sources.size() > 1),
                      std::back_inserter(runs));
  check_names(runs);
  const std::string what = counted(runs.size(), "run");
  if (format) {
    check_output(output);
    const std::size_t rows = write_long_rows(output, runs, *format);
    print("wrote %s: %s of %s\n", output.c_str(), counted(rows, "row").c_str(), what.c_str());
    return 0;
  }
  for (const std::string& remark : write_event_files(output, runs))
    print_error("%s\n", remark.c_str());
  print("wrote the event files of %s; `tensorboard --logdir %s` shows them\n", what.c_str(),
        shell_quoted(output.string()).c_str());
  return 0;
}

}  // namespace

const Command kExport{
    "export", "export SOURCE… --output PATH [--format csv|jsonl|tensorboard] [--out DIR]",
    "what runs have measured, as long CSV, JSON lines or for TensorBoard", run_export};

}  // namespace pipewright
