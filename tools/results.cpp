// SPDX-License-Identifier: Apache-2.0
#include "tools/results.h"

#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/experiment/plugins.h"
#include "core/exports/run_choice.h"
#include "core/measuring/hardware_source.h"
#include "core/measuring/modelled.h"
#include "core/records/leftover_runs.h"
#include "core/records/other_contents.h"
#include "core/simulation/shipped_hardware.h"
#include "core/sweep/kept_results.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/folder_lock.h"
#include "core/system/terminal.h"
#include "core/tables/best_cells.h"
#include "core/tables/table.h"
#include "core/tables/verdicts.h"
#include "tools/report/sources.h"

namespace pipewright {
namespace {

/// One sentence on the best and the worst cell of a table.
std::string advice(const Table& table, const std::vector<RunRecord>& records) {
  const std::optional<BestCells> best = best_cells(table);
  if (!best) return {};
  const std::filesystem::path file = records[best->run].folder / "experiment.yaml";
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return concat(best->sentence, ".\n");
  return concat(best->sentence, "; `pipewright schedule ", shell_quoted(file.string()),
                plugin_words(), "` shows what the best did when.\n");
}

/// The versions of Pipewright that made the rows, if there are others than this one.
void tell_of_versions(const std::vector<ResultRow>& rows) {
  std::map<std::string, std::size_t> others;
  for (const ResultRow& row : rows)
    if (row.version != PIPEWRIGHT_VERSION) ++others[row.version.empty() ? "unknown" : row.version];
  for (const auto& [version, count] : others)
    print_error("%s made by version %s, and this is %s\n",
                concat(counted(count, "row"), count == 1 ? " was" : " were").c_str(),
                version.c_str(), PIPEWRIGHT_VERSION);
}

/// One line for each thing about rows that a reader of the figures should know.
void tell_of_rows(const KeptResults& kept, const std::filesystem::path& file) {
  if (kept.strange > 0)
    print_error("%s of %s %s of no run of this file (its settings are others) and left out\n",
                counted(kept.strange, "row").c_str(), file.c_str(),
                kept.strange == 1 ? "is" : "are");
  if (!kept.merged.elsewhere.empty())
    print_error(
        "%s other results here than in %s, where another processor made them; the rows "
        "stay: %s\n",
        concat(counted(kept.merged.elsewhere.size(), "run"),
               kept.merged.elsewhere.size() == 1 ? " has" : " have")
            .c_str(),
        file.c_str(), join(kept.merged.elsewhere, "; ").c_str());
  tell_of_versions(kept.merged.rows);
}

}  // namespace

std::filesystem::path run_in(const std::filesystem::path& folder, const std::string& settings) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none))
    throw Error(ErrorKind::Experiment,
                concat(folder.empty() ? "" : "is no folder; ",
                       "--where needs the folder of a sweep, such as runs/<name>"),
                folder.string());
  return chosen_run(runs_of_folder(folder), settings).folder;
}

std::filesystem::path run_in(const std::filesystem::path& path, const CommandLine& line) {
  const std::vector<std::string> settings = line.texts("where");
  if (settings.empty()) return path;
  if (settings.size() > 1)
    throw Error(ErrorKind::Experiment,
                concat("--where is given ", settings.size(),
                       " times; expected one, with commas between its settings"));
  return run_in(path, settings.front());
}

std::filesystem::path results_folder(const ExperimentArguments& given, const Value& document) {
  if (!given.out.empty()) return given.out;
  const Value* name = document.find("name");
  const bool text = name != nullptr && name->is(Value::Kind::Text) && !name->text.empty();
  return std::filesystem::path("runs") / (text ? name->text : given.file.stem().string());
}

namespace {

void set_from(const char* option, const std::string& path, const std::string& text,
              Value& document) {
  Value value = Value::of(text);
  value.place = {concat("--", option), 0, 0};
  Problems problems;
  set_path(document, path, value, problems);
  problems.throw_if_any();
}

}  // namespace

void apply_as_if_written(const CommandLine& line, const char* option, const std::string& path,
                         Value& document) {
  if (line.given(option)) set_from(option, path, line.text(option), document);
}

void apply_hardware(const CommandLine& line, const std::string& path, Value& document) {
  if (line.given("hardware"))
    set_from("hardware", path,
             std::filesystem::absolute(hardware_file(line.text("hardware"))).string(), document);
}

void declare_results(CommandLine& line) {
  line.option(
      "results", "FILE",
      "take results of runs from the rows of this file, too, as `table --keep` writes them");
}

namespace {

/// Gives the records the results of rows. Prints and writes nothing.
std::optional<KeptResults> merge_rows(const RowFiles& files, const Value& document,
                                      std::vector<RunRecord>& records) {
  const std::filesystem::path& file = files.results.empty() ? files.keep : files.results;
  if (file.empty()) return std::nullopt;
  if (!files.results.empty() && !files.keep.empty())
    throw Error(ErrorKind::Experiment,
                "--results and --keep exclude each other; --keep reads the rows of its file, too");
  std::error_code none;
  const bool fresh = !files.keep.empty() && !std::filesystem::exists(file, none);
  return keep_results(fresh ? std::vector<ResultRow>() : read_result_rows(file), file, document,
                      records);
}

/// Writes the rows that are to be kept, and says which rows were taken.
void finish_rows(const RowFiles& files, const KeptResults& kept) {
  const std::filesystem::path& file = files.results.empty() ? files.keep : files.results;
  if (!files.keep.empty()) {
    write_merged(file, result_rows_text(kept.merged.rows));
    print_error("%s has %s: %zu new, %zu replaced\n", file.c_str(),
                counted(kept.merged.rows.size(), "row").c_str(), kept.merged.added,
                kept.merged.replaced);
  } else {
    print_error("results of %s are rows of %s\n", counted(kept.used, "run").c_str(), file.c_str());
  }
  tell_of_rows(kept, file);
}

/// While rows are read, merged and written, no other process does so in the folder of their file.
std::optional<FolderTurn> turn_with(const RowFiles& files) {
  if (files.keep.empty()) return std::nullopt;
  return std::optional<FolderTurn>(std::in_place,
                                   std::filesystem::absolute(files.keep).parent_path());
}

}  // namespace

void tell_of_faults(const std::vector<RunRecord>& records) {
  for (const RunRecord& run : records)
    if (!run.fault.empty()) print_error("%s\n", run.fault.c_str());
  for (const std::string& sentence : other_contents(records))
    print_error("warning: %s\n", sentence.c_str());
}

void use_rows(const RowFiles& files, const Value& document, std::vector<RunRecord>& records) {
  const std::optional<FolderTurn> turn = turn_with(files);
  if (const auto kept = merge_rows(files, document, records)) finish_rows(files, *kept);
}

std::vector<RunRecord> results_on(const std::filesystem::path& hardware, const Value& document,
                                  const std::filesystem::path& folder, const RowFiles& files) {
  std::vector<RunRecord> records = sweep_records(document, folder);
  const std::optional<FolderTurn> turn = turn_with(files);
  const std::optional<KeptResults> kept = merge_rows(files, document, records);
  std::set<std::string> origins;
  if (!hardware.empty())  // may begin the program anew, which must not have printed
    origins = add_modelled(records, load_hardware(hardware));
  tell_of_faults(records);
  if (kept) finish_rows(files, *kept);
  for (const std::string& origin : origins) print_error("modelled times: %s\n", origin.c_str());
  return records;
}

std::string hardware_remark(const TableSpec& spec) {
  const TableKey* metric = metric_without_hardware(spec);
  if (metric == nullptr) return {};
  return concat("the table shows ", metric->name,
                ", which is simulated on hardware; set table.hardware, or `pipewright table FILE "
                "--hardware H.yaml` prints it");
}

void print_results(const Value& document, std::vector<RunRecord> records) {
  TableSpec spec = read_table_spec(document);
  if (const std::string missing = hardware_remark(spec); !missing.empty()) {
    print_error("%s\n", missing.c_str());
    if (is_modelled(spec.metric.name)) return;
    std::erase_if(spec.beside, [](const TableKey& each) { return is_modelled(each.name); });
  }
  if (!spec.hardware.empty()) add_modelled(records, load_hardware(spec.hardware));
  const Table table = make_table(spec, records);
  print("%s\n%s", print_table(table, TableFormat::Markdown).c_str(),
        advice(table, records).c_str());
  const std::vector<Verdict> verdicts = judge(read_claims(document), spec, records);
  if (!verdicts.empty()) print("\n%s", print_verdicts(verdicts, TableFormat::Markdown).c_str());
}

std::string command_with(const char* command, const ExperimentArguments& given,
                         const std::string& end) {
  std::string text =
      concat("pipewright ", std::string_view(command), " ", shell_quoted(given.file.string()));
  if (!given.profile.empty()) text += concat(" --profile ", shell_quoted(given.profile));
  for (const std::string& set : given.sets) text += concat(" --set ", shell_quoted(set));
  if (!given.out.empty()) text += concat(" --out ", shell_quoted(given.out.string()));
  return concat(text, plugin_words(), end.empty() ? "" : " ", end);
}

std::string none_begun(const ExperimentArguments& given, const std::vector<RunRecord>& records) {
  const auto missing = [](const RunRecord& run) { return run.state == "missing"; };
  if (!std::ranges::all_of(records, missing)) return "";
  return concat("no run of ", given.file.string(), " has begun here; `",
                command_with("sweep", given, ""), "` makes them");
}

void require_begun(const ExperimentArguments& given, const std::filesystem::path& folder,
                   const std::vector<RunRecord>& records) {
  if (std::string none = none_begun(given, records); !none.empty())
    throw Error(ErrorKind::Data, std::move(none), folder.string());
}

void tell_leftovers(const ExperimentArguments& given, const Value& document,
                    const std::filesystem::path& folder, const std::vector<RunRecord>& records) {
  const std::size_t runs =
      leftovers_of(document.find("name")->text, file_of(document), folder, records).size();
  if (runs == 0) return;
  print_error(
      "%s of another version of this file, or of other --set or --profile, %s here; `%s` "
      "removes %s\n",
      counted(runs, "run").c_str(), runs == 1 ? "is" : "are",
      command_with("sweep", given, "--prune").c_str(), runs == 1 ? "it" : "them");
}

}  // namespace pipewright
