// SPDX-License-Identifier: Apache-2.0
#include "core/exports/run_events.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/exports/event_records.h"
#include "core/records/run_files.h"
#include "core/system/file.h"
#include "core/system/folder_lock.h"
#include "core/system/plain_file.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

/// The beginning of the last session of a run, in seconds since 1970; 0 if it is not recorded.
double start_of(const RunRecord& record) {
  const fs::path file = record.folder / "run.json";
  std::error_code none;
  if (!fs::exists(file, none)) return 0;
  const Value run = load_json(file);
  const Value* const started = run.find("started");
  std::tm utc{};
  if (started == nullptr || !started->is(Value::Kind::Text) ||
      ::strptime(started->text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc) == nullptr)
    return 0;
  return static_cast<double>(::timegm(&utc));
}

/// The clock of a run, as far as its epochs have recorded it.
class EpochClock {
 public:
  explicit EpochClock(const RunRecord& record) : ends_{start_of(record)} {
    const auto seconds = record.column("seconds");
    for (const std::vector<double>& row : record.epochs) {
      const double of_epoch = seconds ? row.at(*seconds) : 0;
      ends_.push_back(ends_.back() + (std::isfinite(of_epoch) ? of_epoch : 0));
    }
  }

  /// The time at which so many epochs were over; the last may be a part of one.
  double at(double epochs) const {
    const double last = static_cast<double>(ends_.size() - 1);
    const double position = std::clamp(epochs, 0., last);
    const auto before = static_cast<std::size_t>(position);
    if (before + 1 == ends_.size()) return ends_.back();
    return ends_[before] + (position - std::floor(position)) * (ends_[before + 1] - ends_[before]);
  }

 private:
  std::vector<double> ends_;  ///< [0]: of the beginning
};

/// Appends the numbers of one run to its event file.
class RunEvents {
 public:
  explicit RunEvents(const RunRecord& record) : record_(record), clock_(record) {
    file_ = version_record(clock_.at(0));
    read_steps(record.folder, [&](const StepTable&, const StepRow& row) {
      epoch_length_ = std::max(epoch_length_, row.minibatch + 1);
    });
    read_evaluations(record, [&](const MetricRow& row) {
      if (row.metric == "minibatches" && row.epoch > 0)
        epoch_length_ = (static_cast<int>(row.value) - 1 - *row.minibatch) / row.epoch;
    });
  }

  void add_epochs() {
    const auto is_traffic = [](const std::string& column) {
      return std::ranges::count(kTrafficColumns, column) > 0;
    };
    const std::size_t epoch = epoch_column(record_);
    for (const std::vector<double>& row : record_.epochs) {
      std::vector<TaggedValue> values;
      for (std::size_t i = 0; i < row.size(); ++i)
        if (i != epoch && !std::isnan(row[i]) && !is_traffic(record_.columns[i]))
          values.push_back({epoch_tag(record_.columns[i]), row[i]});
      if (!values.empty())
        file_ += event_record(clock_.at(row[epoch] + 1), std::llround(row[epoch]), values);
    }
  }

  void add_steps() {
    read_steps(record_.folder, [&](const StepTable& table, const StepRow& row) {
      std::vector<TaggedValue> values;
      for (std::size_t i = 0; i < row.numbers.size(); ++i)
        if (!std::isnan(row.numbers[i]))
          values.push_back({step_tag(table.columns[i]), row.numbers[i]});
      if (!values.empty()) add(row.epoch, row.minibatch, values);
    });
  }

  void add_evaluations() {
    read_evaluations(record_, [&](const MetricRow& row) {
      if (!row.metric.starts_with("test_")) return;
      const TaggedValue value{evaluation_tag(row.metric), row.value};
      add(row.epoch, *row.minibatch, {&value, 1});
    });
  }

  /// Returns whether all could be placed.
  bool add_probes() {
    bool all = true;
    for (const ProbeValue& each : read_probe_log(record_.folder)) {
      const bool placed = each.epoch == 0 || epoch_length_ > 0;
      const TaggedValue value{probe_tag(each.probe, each.quantity, each.stage), each.value};
      if (placed) add(each.epoch, each.minibatch, {&value, 1});
      all = all && placed;
    }
    return all;
  }

  std::string take() { return std::move(file_); }

 private:
  void add(int epoch, int minibatch, std::span<const TaggedValue> values) {
    const double part = epoch_length_ == 0 ? 0 : (minibatch + 1.) / epoch_length_;
    file_ += event_record(clock_.at(epoch + part), std::int64_t{epoch} * epoch_length_ + minibatch,
                          values);
  }

  const RunRecord& record_;
  EpochClock clock_;
  int epoch_length_ = 0;  ///< mini-batches; 0: not known
  std::string file_;
};

/// Throws Error{Data} unless the folder is missing, or one for event files of ours.
void check_folder(const fs::path& folder) {
  std::error_code none;
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorKind::Data, concat(why, "; give another --output"), folder.string());
  };
  const fs::file_status status = fs::symlink_status(folder, none);
  if (status.type() == fs::file_type::not_found) return;
  if (fs::is_symlink(status)) refuse("is a link, which event files are not written through");
  if (!fs::is_directory(status)) refuse("is no folder");
  if (fs::exists(folder / kFolderMarker, none) || fs::exists(folder / "run.json", none))
    refuse("is a folder of runs, which exports leave as it is");
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    const std::string name = at->path().filename().string();
    if (name.find("tfevents") != std::string::npos && !name.starts_with(kEventFile))
      refuse("has an event file of another program, whose curves would be mixed with these");
  }
  require_plain_file(folder / kEventFile);
}

constexpr std::string_view kPerStep = "loss_per_step/", kProbe = "probe.",
                           kEvaluated = "_per_step/test", kRate = "lr_per_step";

}  // namespace

std::string event_file_of(const RunRecord& record, std::vector<std::string>& remarks) {
  RunEvents events(record);
  events.add_epochs();
  events.add_steps();
  events.add_evaluations();
  if (!events.add_probes())
    remarks.push_back(concat(record.folder.string(),
                             ": what probes measured after the first epoch is left out, because "
                             "without steps.csv (output.steps: true) nothing says how many "
                             "mini-batches an epoch has"));
  return events.take();
}

std::vector<std::string> write_event_files(const fs::path& out,
                                           const std::vector<ExportedRun>& runs) {
  check_folder(out);
  for (const ExportedRun& run : runs) {
    const fs::path folder = out / run.name;
    if (folder.parent_path() != out) check_folder(folder.parent_path());
    check_folder(folder);
  }
  std::vector<std::string> remarks;
  for (const ExportedRun& run : runs) {
    const fs::path folder = out / run.name;
    // What a killed export has left there would be read as a second event file.
    remove_parts(folder, [](std::string_view name) { return name == kEventFile; });
    write_file(folder / kEventFile, event_file_of(run.record, remarks));
    if (!run.record.done())
      remarks.push_back(concat(run.name, " is ", run.record.state,
                               ", and TensorBoard shows it as far as it has come"));
  }
  return remarks;
}

std::string epoch_tag(std::string_view column) {
  for (const std::string_view data : {"train", "test"})
    if (column.starts_with(concat(data, "_")))
      return printable(concat(column.substr(data.size() + 1), "/", data));
  return printable(column);  // a tag is UTF-8, or readers refuse its file
}

std::string step_tag(std::string_view column) {
  constexpr std::string_view kAuxiliary = "loss_";
  if (column == "lr") return std::string(kRate);
  if (!column.starts_with(kAuxiliary)) return concat(kPerStep, "train");
  return printable(concat(kPerStep, "stage_", column.substr(kAuxiliary.size())));
}

std::string evaluation_tag(std::string_view column) {
  return printable(concat(column.substr(std::string_view("test_").size()), kEvaluated));
}

std::string probe_tag(std::string_view probe, std::string_view quantity, std::optional<int> stage) {
  return printable(concat(kProbe, probe, "/", quantity, stage ? concat("/stage_", *stage) : ""));
}

bool is_per_minibatch(std::string_view tag) {
  return tag.starts_with(kPerStep) || tag.starts_with(kProbe) || tag.ends_with(kEvaluated) ||
         tag == kRate;
}

}  // namespace pipewright
