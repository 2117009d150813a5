// SPDX-License-Identifier: Apache-2.0
#include "tools/results.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/merge.h"
#include "core/experiment/plugins.h"
#include "core/modelling/hardware_source.h"
#include "core/modelling/modelled.h"
#include "core/records/leftover_runs.h"
#include "core/reports/best_cells.h"
#include "core/reports/table.h"
#include "core/reports/verdicts.h"
#include "core/simulation/shipped_hardware.h"
#include "core/sweep/sweep_plan.h"
#include "core/system/terminal.h"

namespace pipewright {
namespace {

/// One sentence on the best and the worst cell of a table.
std::string advice(const Table& table, const std::vector<RunRecord>& records) {
  const std::optional<BestCells> best = best_cells(table);
  if (!best) return {};
  const std::filesystem::path file = records[best->run].folder / "experiment.yaml";
  return concat(best->sentence, "; `pipewright schedule ", shell_quoted(file.string()),
                plugin_words(), "` shows what the best did when.\n");
}

}  // namespace

std::filesystem::path results_folder(const ExperimentArguments& given, const Value& document) {
  if (!given.out.empty()) return given.out;
  const Value* name = document.find("name");
  const bool text = name != nullptr && name->is(Value::Kind::Text) && !name->text.empty();
  return std::filesystem::path("runs") / (text ? name->text : given.file.stem().string());
}

void apply_as_if_written(const CommandLine& line, const char* option, const std::string& path,
                         Value& document) {
  if (!line.given(option)) return;
  Value value = Value::of(line.text(option));
  value.place = {concat("--", option), 0, 0};
  Problems problems;
  set_path(document, path, value, problems);
  problems.throw_if_any();
}

void apply_hardware(const CommandLine& line, const std::string& path, Value& document) {
  constexpr const char* kOption = "hardware";
  if (!line.given(kOption)) return;
  const std::filesystem::path file = hardware_file(line.text(kOption));
  Value value = Value::of(std::filesystem::absolute(file).string());
  value.place = {concat("--", std::string_view(kOption)), 0, 0};
  Problems problems;
  set_path(document, path, value, problems);
  problems.throw_if_any();
}

std::vector<RunRecord> results_on(const std::filesystem::path& hardware, const Value& document,
                                  const std::filesystem::path& folder) {
  std::vector<RunRecord> records = sweep_records(document, folder);
  if (hardware.empty()) return records;
  const Hardware machine = load_hardware(hardware);
  for (const std::string& origin : add_modelled(records, machine))
    print_error("modelled times: %s\n", origin.c_str());
  return records;
}

void print_results(const Value& document, std::vector<RunRecord> records) {
  TableSpec spec = read_table_spec(document);
  if (const TableKey* metric = metric_without_hardware(spec)) {
    print_error(
        "the table shows %s, which is simulated on hardware; `pipewright table FILE "
        "--hardware H.yaml` prints it\n",
        metric->name.c_str());
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
  return concat(text, plugin_words(), " ", end);
}

void tell_leftovers(const ExperimentArguments& given, const Value& document,
                    const std::filesystem::path& folder, const std::vector<RunRecord>& records) {
  const std::size_t runs = leftovers_of(document.find("name")->text, folder, records).size();
  if (runs == 0) return;
  print_error("%s of another version of this file %s left here; `%s` removes %s\n",
              counted(runs, "run").c_str(), runs == 1 ? "is" : "are",
              command_with("sweep", given, "--prune").c_str(), runs == 1 ? "it" : "them");
}

}  // namespace pipewright
