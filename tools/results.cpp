#include "tools/results.h"

#include <cstdio>

#include "core/base/error.h"
#include "core/base/terminal.h"
#include "core/config/merge.h"
#include "core/experiment/modelled.h"
#include "core/experiment/plugins.h"
#include "core/experiment/sweep_plan.h"
#include "core/experiment/table.h"

namespace pipewright {
namespace {

struct NamedCell {
  const TableCell* cell = nullptr;
  std::string name;  ///< "vgg16, PD4"
};

/// "vgg16, PD4 (93.10)"
std::string shown(const Table& table, const NamedCell& named) {
  const double mean = named.cell->mean();
  char text[64];
  std::snprintf(text, sizeof text, table.percent ? "%.2f" : "%.4g",
                table.percent ? 100 * mean : mean);
  return concat(named.name, " (", std::string_view(text), ")");
}

std::string advice(const Table& table, const std::vector<RunRecord>& records) {
  NamedCell best, worst;
  const auto better = [&](const TableCell& a, const TableCell& b) {
    return smaller_is_better(table.metric) ? a.mean() < b.mean() : a.mean() > b.mean();
  };
  for (std::size_t r = 0; r < table.cells.size(); ++r)
    for (std::size_t c = 0; c < table.cells[r].size(); ++c) {
      const TableCell& cell = table.cells[r][c];
      if (cell.values.empty()) continue;
      if (best.cell == nullptr || better(cell, *best.cell)) best = {&cell, cell_name(table, r, c)};
      if (worst.cell == nullptr || better(*worst.cell, cell))
        worst = {&cell, cell_name(table, r, c)};
    }
  if (best.cell == nullptr) return {};
  std::string text = concat("Best: ", shown(table, best));
  if (worst.cell != best.cell) text += concat("; worst: ", shown(table, worst));
  const std::filesystem::path folder = records[best.cell->runs.front()].folder;
  return text + concat("; `pipewright schedule ",
                       shell_quoted((folder / "experiment.yaml").string()), plugin_words(),
                       "` shows what the best did when.\n");
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

void apply_path(const CommandLine& line, const char* option, const std::string& path,
                Value& document) {
  if (!line.given(option)) return;
  Value value = Value::of(std::filesystem::absolute(line.text(option)).string());
  value.place = {concat("--", option), 0, 0};
  Problems problems;
  set_path(document, path, value, problems);
  problems.throw_if_any();
}

std::vector<RunRecord> results_on(const std::filesystem::path& hardware, const Value& document,
                                  const std::filesystem::path& folder) {
  std::vector<RunRecord> records = sweep_records(document, folder);
  if (hardware.empty()) return records;
  const Hardware machine = load_hardware(hardware);
  add_modelled(records, machine);
  print_error("modelled times: %s\n", counted_from(machine).c_str());
  return records;
}

void print_results(const Value& document, const std::filesystem::path& folder) {
  const TableSpec spec = read_table_spec(document);
  const std::vector<RunRecord> records = results_on(spec.hardware, document, folder);
  const Table table = make_table(spec, records);
  print("%s\n%s", print_table(table, TableFormat::Markdown).c_str(),
        advice(table, records).c_str());
}

}  // namespace pipewright
