// SPDX-License-Identifier: Apache-2.0
// `pipewright table`: prints the results of a sweep as a table.
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/experiment/named_keys.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/terminal.h"
#include "core/tables/against.h"
#include "core/tables/results_json.h"
#include "core/tables/table.h"
#include "core/tables/tradeoff.h"
#include "core/tables/verdicts.h"
#include "tools/command.h"
#include "tools/results.h"

namespace pipewright {
namespace {

/// nullopt: JSON, which has more than the table.
std::optional<TableFormat> format_of(const std::string& name) {
  if (name == "markdown") return TableFormat::Markdown;
  if (name == "csv") return TableFormat::Csv;
  if (name == "latex") return TableFormat::Latex;
  if (name == "json") return std::nullopt;
  throw Error(ErrorKind::Experiment,
              concat("--format is '", name, "'; expected markdown, csv, latex or json"));
}

/// Throws if a metric is modelled and there is nothing to model it on.
void check_hardware(const TableSpec& spec) {
  const TableKey* metric = metric_without_hardware(spec);
  if (metric != nullptr)
    throw Error(ErrorKind::Experiment,
                concat("the metric '", metric->name,
                       "' is simulated on hardware, and none is given; give --hardware FILE, or "
                       "set table.hardware"),
                metric->place.text());
}

/// Before a run has results, a metric is one that its configuration says it will have.
Table table_of(const TableSpec& spec, const std::vector<RunRecord>& runs) {
  const auto has_metrics = [](const RunRecord& run) {
    return !run.columns.empty() || !run.modelled.empty();
  };
  return make_table(spec,
                    std::ranges::any_of(runs, has_metrics) ? runs : with_columns_to_come(runs));
}

/// Whether there are trained runs, hardware to model them on, and a metric to weigh against time.
bool shows_tradeoff(const TableSpec& spec, const std::vector<RunRecord>& runs) {
  return !spec.hardware.empty() && !is_modelled(spec.metric.name) &&
         better_values(spec.metric.name) != Better::NotJudged &&
         std::ranges::any_of(runs, &RunRecord::done);
}

int run_table(const std::vector<std::string>& arguments) {
  CommandLine line(
      kTable,
      "Prints the results of a sweep as the `table` section of the file says: cells are "
      "mean ± sample standard deviation (number of runs that are done). Runs that "
      "failed, are missing, interrupted or running are counted as such and become no "
      "number, but for those that diverged where table.failed_as gives them one. --set and "
      "--profile must be those of the sweep. Below it stands whether "
      "the runs show what the section `claims` says.\n\n"
      "With --hardware every run is simulated on that hardware, trained or not. The metrics "
      "modelled_… say what it would take there, and a table of trained runs is followed by one of "
      "accuracy against modelled time, in which the runs that no other beats in both are marked.");
  line.experiment(true);
  line.option(
      "format", "F",
      "print the table as markdown, csv or latex, or, with all numbers of its claims, as json",
      "markdown");
  line.option("metric", "M", "show this metric instead of the file's table.metric");
  line.option("epoch", "E",
              "show the last epoch that was evaluated, or the best of each run: last or best");
  line.option("against", "NAME",
              "below the table, print by how much each row, or column, differs from the one with "
              "this name, such as a scheme or KEY=VALUE, in pairs of equal seeds, and whether that "
              "is a difference");
  line.option("hardware", "FILE",
              "simulate every run on this hardware: a file, or a name of `list hardware`");
  declare_results(line);
  line.output("keep", "FILE",
              "keep the results of finished runs as rows of this CSV file: it gets those that it "
              "lacks, the rows that it has stay, and the table is of both");
  line.output("output,o", "FILE", "write the table there instead of printing it");
  if (!line.parse(arguments)) return 0;
  const ExperimentArguments given = line.experiment_arguments();
  const std::optional<TableFormat> format = format_of(line.text("format"));
  Value document = given.document();
  apply_hardware(line, "table.hardware", document);
  // What a claim says is about the metric and epoch of the file, whatever the table shows.
  const TableSpec as_claimed = read_table_spec(document);
  apply_as_if_written(line, "metric", "table.metric", document);
  apply_as_if_written(line, "epoch", "table.epoch", document);
  TableSpec spec = read_table_spec(document);
  spec.keep_meaning_of(as_claimed);
  check_hardware(spec);
  const std::filesystem::path folder = results_folder(given, document);
  const std::vector<RunRecord> runs =
      results_on(spec.hardware, document, folder,
                 {.results = line.text("results"), .keep = line.text("keep")});
  const Table table = table_of(spec, runs);
  const std::vector<Verdict> verdicts = judge(read_claims(document), as_claimed, runs);
  const std::string against = line.text("against");
  const std::vector<ClaimTest> differences =
      against.empty() ? std::vector<ClaimTest>() : differences_from(against, table, runs);
  const std::vector<TradeoffRow> tradeoff =
      shows_tradeoff(spec, runs) ? make_tradeoff(spec, runs) : std::vector<TradeoffRow>();
  std::string text =
      format ? print_table(table, *format) : results_json(table, verdicts, differences, tradeoff);
  if (!tradeoff.empty() && format == TableFormat::Markdown)
    text += "\n" + print_tradeoff(spec, tradeoff);
  std::string claims = format ? print_verdicts(verdicts, *format) : std::string();
  if (format && !against.empty())
    claims = concat(print_differences(against, table.metric, differences, *format),
                    claims.empty() ? "" : "\n", claims);
  if (!claims.empty() && format != TableFormat::Csv) text += "\n" + claims;
  if (line.given("output"))
    write_output(line.text("output"), text);
  else
    print("%s", text.c_str());
  // CSV has no place for remarks.
  if (const std::string note = mixing_note(table); format == TableFormat::Csv && !note.empty())
    print_error("%s\n", note.c_str());
  if (format == TableFormat::Csv) print_error("%s", claims.c_str());
  tell_leftovers(given, document, folder, runs);
  if (const std::string none = none_begun(given, runs);
      !none.empty() && !is_modelled(spec.metric.name))
    print_error("%s\n", none.c_str());
  return 0;
}

}  // namespace

const Command kTable{
    "table",
    "table FILE [--format F] [--metric M] [--epoch E] [--against NAME] [--hardware H] "
    "[--results "
    "ROWS | --keep ROWS] "
    "[--out DIR] [--output FILE]",
    "the results of a sweep as a table", run_table};

}  // namespace pipewright
