// SPDX-License-Identifier: Apache-2.0
// `pipewright report`: all about an experiment's runs as one HTML page.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/experiment/plugins.h"
#include "core/measuring/hardware_source.h"
#include "core/page/comparisons.h"
#include "core/page/page_content.h"
#include "core/records/other_contents.h"
#include "core/runtime/build_info.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "core/tables/best_cells.h"
#include "core/tables/default_layout.h"
#include "tools/command.h"
#include "tools/report/charts.h"
#include "tools/report/sources.h"
#include "tools/results.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// What the command was asked for, as read.
struct ReportSource {
  Value document;
  std::vector<RunRecord> runs;
  fs::path folder;        ///< of the results
  bool labelled = false;  ///< the runs of a folder have labels of their own
  std::vector<std::string> remarks = {};
};

/// Leaves out finished runs that are the same training as one before them, which a changed label or
/// a default written out makes: counted twice, they would be two of n.
void leave_out_repeated(ReportSource& source) {
  std::set<std::string> known;
  const std::size_t left_out = std::erase_if(source.runs, [&](const RunRecord& run) {
    return run.done() && !run.digest.empty() && !known.insert(run.digest).second;
  });
  if (left_out > 0)
    source.remarks.push_back(concat(counted(left_out, "run"), left_out == 1 ? " is" : " are",
                                    " left out, because the folder has the same training twice."));
}

/// The table of a report. A modelled metric without hardware gives way to the usual one.
TableSpec report_table(const ReportSource& source, Report& report) {
  TableSpec spec = read_table_spec(source.document);
  spec.labelled = spec.labelled || source.labelled;
  const TableKey* const modelled = metric_without_hardware(spec);
  if (modelled == nullptr) return spec;
  report.remarks.push_back(concat(modelled->name,
                                  " is simulated on hardware, and none was given; `pipewright "
                                  "report FILE --hardware H.yaml` shows it."));
  std::erase_if(spec.beside, [](const TableKey& each) { return is_modelled(each.name); });
  if (is_modelled(spec.metric.name)) spec = spec.with_metric({default_metric(source.document), {}});
  return spec;
}

/// All but what the runs themselves say.
void add_results(const ReportSource& source, Report& report) {
  const TableSpec table = report_table(source, report);
  report.metric = table.metric.name;
  report.table = make_table(table, report.runs);
  if (const auto best = best_cells(*report.table)) report.best = best->sentence + ".";
  report.verdicts = judge(read_claims(source.document), table, report.runs);
  const TableSpec layout = laid_out(table, report.runs);
  add_curves(source.document, layout, report);
  report.against = charts_against(layout, *report.table, report.runs);
  report.front = front_of(table, *report.table, report.runs);
}

/// The commands that repeat the report of a file.
std::vector<ReportCommand> commands_of_file(const ExperimentArguments& given,
                                            const Value& document) {
  const bool sweep = document.find("sweep") != nullptr;
  std::vector<ReportCommand> commands;
  commands.push_back({"Train all runs", command_with(sweep ? "sweep" : "run", given, "")});
  commands.push_back({"Print the table and the verdicts", command_with("table", given, "")});
  commands.push_back({"Draw the curves", command_with("plot", given, "")});
  commands.push_back({"Write this page", command_with("report", given, "")});
  return commands;
}

std::vector<ReportCommand> commands_of_folder(const fs::path& folder,
                                              const std::vector<RunRecord>& runs) {
  std::vector<ReportCommand> commands;
  for (const RunRecord& run : runs) {
    if (commands.size() == 20) break;
    const fs::path file = run.folder / "experiment.yaml";
    std::error_code none;
    if (fs::exists(file, none))
      commands.push_back(
          {concat("Train ", run.label, " again"),
           concat("pipewright run ", shell_quoted(file.string()), plugin_words(), " --out ",
                  shell_quoted("again-" + run.folder.filename().string()))});
  }
  commands.push_back({"Write this page",
                      concat("pipewright report ", shell_quoted(folder.string()), plugin_words())});
  return commands;
}

/// What a reader should know of runs that are not done.
void add_remarks(Report& report) {
  const auto in_state = [&](const char* state) {
    return std::ranges::any_of(report.runs,
                               [&](const RunRecord& run) { return run.state == state; });
  };
  if (in_state("running"))
    report.remarks.emplace_back("Some runs were going on when this page was written.");
  for (const std::string& sentence : other_contents(report.runs))
    report.remarks.push_back(sentence + ".");
  if (std::ranges::none_of(report.runs, &RunRecord::done))
    report.remarks.emplace_back("No run is done yet, so there are no results.");
}

ReportSource source_of(const CommandLine& line, const ExperimentArguments& given) {
  std::error_code none;
  if (fs::is_directory(given.file, none)) {
    line.refuse_given({"set", "profile", "out", "results", "hardware"},
                      "needs the experiment's file in the place of a folder of its runs");
    std::vector<RunRecord> runs = runs_of_folder(given.file);
    Value document = document_of(runs, given.file);
    const bool labelled = have_own_labels(runs);
    ReportSource source{std::move(document), std::move(runs), given.file, labelled};
    leave_out_repeated(source);
    return source;
  }
  Value document = given.document();
  apply_hardware(line, "table.hardware", document);
  const fs::path folder = results_folder(given, document);
  const TableSpec table = read_table_spec(document);
  std::vector<RunRecord> runs =
      results_on(table.hardware, document, folder, {.results = line.text("results")});
  ReportSource source{std::move(document), std::move(runs), folder, false};
  require_begun(given, source.folder, source.runs);
  return source;
}

/// Throws Error{Data} if the file is there and is no page of this command: somebody else's page has
/// the name that nobody gave.
void require_own_page(const fs::path& file) {
  constexpr std::streamsize kBeginning = 4096;
  std::error_code none;
  if (!fs::exists(file, none)) return;
  std::string beginning(kBeginning, '\0');
  std::ifstream in;  // not as an input, which could not be replaced
  if (fs::is_regular_file(file, none)) in.open(file, std::ios::binary);  // a FIFO would block
  in.read(beginning.data(), kBeginning);
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (!is_report_page(beginning))
    throw Error(ErrorKind::Data,
                "is no page of `pipewright report` and stays; --output FILE writes the page "
                "elsewhere",
                file.string());
}

int run_report(const std::vector<std::string>& arguments) {
  CommandLine line(
      kReport,
      "Writes one HTML page about all runs of an experiment, which needs no network and no server: "
      "the question, the table beside published numbers, verdicts, curves, the metric against "
      "settings and against time, each schedule (planned above measured where a run was traced), "
      "what probes measured, settings, failures with their reasons, machines and digests, the "
      "commands that repeat it, and BibTeX. Instead of FILE, which has the sections table, plot "
      "and claims, the folder of a run or of a sweep can be given.");
  line.experiment(true);
  line.option("hardware", "FILE",
              "simulate every run on this hardware, for the metric against modelled time: a file, "
              "or a name of `list hardware`");
  declare_results(line);
  line.option("output,o", "FILE", "write the page there; default: report.html in the runs' folder");
  line.where();
  if (!line.parse(arguments)) return 0;
  ExperimentArguments given = line.experiment_arguments();
  given.file = run_in(given.file, line);
  std::error_code none;
  const bool of_folder = fs::is_directory(given.file, none);
  ReportSource source = source_of(line, given);
  Report report{.title = source.document.find("name")->text,
                .question = of_folder ? std::string() : leading_comment(given.file),
                .runs = std::move(source.runs),
                .remarks = versions_of_rows(line.text("results"))};
  report.version = build_info().version;
  report.commit = build_info().commit;
  std::ranges::move(source.remarks, std::back_inserter(report.remarks));
  add_remarks(report);
  report.schedules = schedules_of(report.runs);
  add_results(source, report);
  add_edges(report);
  if (const fs::path hardware = read_table_spec(source.document).hardware; !hardware.empty())
    report.memory = memory_on(load_hardware(hardware), report);
  report.commands = of_folder ? commands_of_folder(given.file, report.runs)
                              : commands_of_file(given, source.document);
  fs::path output = line.text("output");
  if (output.empty()) {
    if (!of_folder) make_folders(source.folder);
    output = source.folder / "report.html";
  }
  if (!line.given("output")) require_own_page(output);
  if (!of_folder) tell_leftovers(given, source.document, source.folder, report.runs);
  write_output(output, report_page(std::move(report)));
  return 0;
}

}  // namespace

const Command kReport{"report",
                      "report FILE|DIR [--hardware H] [--results ROWS] [--out DIR] [--output FILE]",
                      "all about the runs as one HTML page", run_report};

}  // namespace pipewright
