// SPDX-License-Identifier: Apache-2.0
#include "core/exports/metric_rows.h"

#include <cmath>

#include "core/base/csv.h"
#include "core/base/parsed.h"
#include "core/config/json.h"
#include "core/records/row_log.h"
#include "core/records/run_folder.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlaceFields = 2;  // of a row of steps.csv: epoch and mini-batch

std::vector<std::string> step_columns(const CsvReader& header) {
  std::vector<std::string> columns = header.texts();
  if (columns.size() <= kPlaceFields || columns[0] != "epoch" || columns[1] != "minibatch")
    header.fail(1, "is no header of steps.csv; expected epoch,minibatch,loss");
  columns.erase(columns.begin(), columns.begin() + kPlaceFields);
  return columns;
}

StepRow step_row(const CsvReader& reader, const StepTable& table) {
  reader.expect_fields(kPlaceFields + table.columns.size());
  const auto whole = [&](const CsvField& field) {
    if (const auto number = parsed<int>(field.text)) return *number;
    reader.fail(field.column, concat("'", field.text, "' is not a whole number"));
  };
  StepRow row{whole(reader.fields()[0]), whole(reader.fields()[1]), {}};
  for (std::size_t i = kPlaceFields; i < reader.fields().size(); ++i)
    row.numbers.push_back(number_of(reader, reader.fields()[i]));
  return row;
}

void read_epochs(const RunRecord& record, const std::function<void(const MetricRow&)>& take) {
  const std::size_t epoch = epoch_column(record);
  for (const std::vector<double>& row : record.epochs)
    for (std::size_t i = 0; i < row.size(); ++i)
      if (i != epoch && !std::isnan(row[i]))
        take({static_cast<int>(row[epoch]), std::nullopt, record.columns[i], row[i]});
}

}  // namespace

void check_files(const RunRecord& record) {
  for (const char* name : {"run.json", "point.json"})
    if (is_there(record.folder / name)) static_cast<void>(load_json(record.folder / name));
  const RunFolder folder(record.folder);
  if (is_there(folder.experiment())) try {
      static_cast<void>(load_yaml(folder.experiment()));
    } catch (const Error& error) {  // of a run it is data, not the experiment given
      throw Error(ErrorKind::Data, error.message(), error.where());
    }
  if (is_there(record.folder / "epochs.csv"))
    static_cast<void>(read_number_table(record.folder / "epochs.csv"));
  if (is_there(folder.evaluations())) static_cast<void>(read_number_table(folder.evaluations()));
  if (is_there(folder.traffic())) static_cast<void>(read_number_table(folder.traffic(), "kind"));
}

std::size_t epoch_column(const RunRecord& record) {
  const auto column = record.column("epoch");
  if (!column && !record.columns.empty())
    throw Error(ErrorKind::Data, "has no column 'epoch'", (record.folder / "epochs.csv").string());
  return column.value_or(0);
}

StepTable read_steps(const fs::path& run_folder,
                     const std::function<void(const StepTable&, const StepRow&)>& take) {
  const fs::path file = RunFolder(run_folder).steps();
  StepTable table;
  if (!is_there(file)) return table;
  std::error_code unknown;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(file, unknown));
  std::size_t number = 0;
  read_row_log(run_folder, {.name = file.filename().string(), .bytes = unknown ? 0 : bytes},
               [&](std::string_view line) {
                 CsvReader reader(line, file.string(), {}, ++number);
                 if (!reader.next() || reader.fields().empty()) return;
                 if (table.columns.empty())
                   table.columns = step_columns(reader);
                 else
                   take(table, step_row(reader, table));
               });
  return table;
}

void read_evaluations(const RunRecord& record, const std::function<void(const MetricRow&)>& take) {
  const auto epoch = record.evaluations.find("epoch"),
             minibatch = record.evaluations.find("minibatch");
  if (epoch == record.evaluations.end() || minibatch == record.evaluations.end()) return;
  for (std::size_t i = 0; i < epoch->second.size(); ++i)
    for (const auto& [column, values] : record.evaluations)
      if (column != "epoch" && column != "minibatch" && !std::isnan(values[i]))
        take({static_cast<int>(epoch->second[i]), static_cast<int>(minibatch->second[i]), column,
              values[i]});
}

void read_metric_rows(const RunRecord& record, const std::function<void(const MetricRow&)>& take) {
  read_epochs(record, take);
  read_steps(record.folder, [&](const StepTable& table, const StepRow& row) {
    for (std::size_t i = 0; i < row.numbers.size(); ++i)
      if (!std::isnan(row.numbers[i]))
        take({row.epoch, row.minibatch, table.columns[i] == "lr" ? "lr_per_step" : table.columns[i],
              row.numbers[i]});
  });
  read_evaluations(record, [&](const MetricRow& row) {
    if (row.metric.starts_with("test_"))
      take({row.epoch, row.minibatch, concat("evaluation.", row.metric), row.value});
  });
  for (const ProbeValue& each : read_probe_log(record.folder))
    take({each.epoch, each.minibatch,
          concat("probe.", each.probe, ".", each.quantity,
                 each.stage ? concat("[", *each.stage, "]") : ""),
          each.value});
}

}  // namespace pipewright
