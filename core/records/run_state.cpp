// SPDX-License-Identifier: Apache-2.0
#include "core/records/run_state.h"

#include <sys/resource.h>

#include <cmath>
#include <functional>

#include "core/config/json.h"
#include "core/records/run_claim.h"
#include "core/records/run_record.h"
#include "core/system/utc.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLargestRunJson = 1 << 22;  // bytes

rusage used_by_process() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used;
}

/// Seconds that all threads of this process have computed.
double processor_seconds() {
  const rusage used = used_by_process();
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

Value read_run_json(const RunFolder& folder) {
  const std::filesystem::path path = folder.path() / "run.json";
  const std::string text = read_file(path, kLargestRunJson);
  try {
    Value run = parse_json(text, path.string());
    if (run.is(Value::Kind::Mapping)) return run;
  } catch (const Error&) {
  }
  throw Error(ErrorKind::Data, "is damaged: it is not JSON; give --overwrite or another --out",
              path.string());
}

Value final_metrics(const std::vector<EpochRow>& epochs, const std::vector<std::string>& metrics) {
  Value last = Value::mapping();
  const auto set = [&](const std::string& name, const auto& of_row) {
    std::vector<double> values;
    for (const EpochRow& row : epochs) values.push_back(std::invoke(of_row, row));
    const double value = value_at("last", name, values);
    if (!std::isnan(value)) last.at_or_add(name) = Value::of(value);
  };
  set("train_loss", &EpochRow::train_loss);
  set("test_loss", &EpochRow::test_loss);
  set("test_accuracy", &EpochRow::test_accuracy);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    set("test_" + metrics[i], [i](const EpochRow& row) { return row.metrics.at(i); });
  return last;
}

RunState::RunState(const RunFolder& folder, bool first, const Value& facts, const Value& remarks)
    : folder_(folder), first_(first), processor_start_(processor_seconds()) {
  set("state", Value::of("running"));
  for (const auto& [key, value] : facts.fields) set(key, value);
  set("started", Value::of(utc_now()));
  set("remarks", remarks);
  if (first) folder_.write_state(run_);
}

void RunState::done(const Value& final) {
  set("final", final);
  end("done");
  folder_.write_state(run_);
}

void RunState::failed(const Error& error) {
  try {
    // If a link breaks, both processes report the other's silence; the first report is kept.
    if (recorded_state(folder_) != "running") return;
    if (!first_) run_ = read_run_json(folder_);  // process 0 has recorded more
    end(error.kind() == ErrorKind::Interrupted ? "interrupted" : "failed");
    set("error", Value::of(error.what()));
    set("exit_code", Value::of(static_cast<int>(error.kind())));
    folder_.write_state(run_);
  } catch (const std::exception&) {
  }
}

void RunState::end(const std::string& state) {
  set("state", Value::of(state));
  set("finished", Value::of(utc_now()));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start_;
  set("wall_seconds", Value::of(wall.count()));
  if (run_.find("processes")->integer != 1) return;
  set("processor_seconds", Value::of(processor_seconds() - processor_start_));
  set("peak_memory_bytes", Value::of(std::int64_t{1024} * used_by_process().ru_maxrss));
}

}  // namespace pipewright
