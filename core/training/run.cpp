// SPDX-License-Identifier: Apache-2.0
#include "core/training/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/wording.h"
#include "core/drawing/render.h"
#include "core/experiment/perturbation.h"
#include "core/experiment/plugins.h"
#include "core/measuring/measured_device.h"
#include "core/measuring/measured_layout.h"
#include "core/measuring/profiling.h"
#include "core/records/run_claim.h"
#include "core/records/run_folder.h"
#include "core/records/run_record.h"
#include "core/runtime/build_info.h"
#include "core/runtime/devices/intra_op_threads.h"
#include "core/schedule/remarks.h"
#include "core/system/file.h"
#include "core/system/foreign_error.h"
#include "core/system/host_name.h"
#include "core/system/terminal.h"
#include "core/traces/measured_times.h"
#include "core/training/contents.h"
#include "core/training/memory_need.h"
#include "core/training/plan.h"
#include "core/training/processor.h"
#include "core/training/progress.h"
#include "core/training/resume.h"
#include "core/training/trainer.h"

namespace pipewright {
namespace {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// The loaded plugins, each with its path and the SHA-256 of its file.
Value plugins_value() {
  Value plugins = Value::sequence();
  for (const Plugin& plugin : loaded_plugins()) {
    Value entry = Value::mapping();
    entry.at_or_add("path") = Value::of(plugin.path.string());
    entry.at_or_add("sha256") = Value::of(plugin.sha256);
    plugins.items.push_back(std::move(entry));
  }
  return plugins;
}

/// The most memory that this process has had at once, in bytes.
std::int64_t peak_memory() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::int64_t{1024} * used.ru_maxrss;
}

/// The last value of each column of epochs.csv that has one, without the number of the epoch.
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

/// Seconds that all threads of this process have computed.
double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// The content of run.json, written when the run starts and again when it ends in any way.
class RunState {
 public:
  /// `device`: the first worker's; `contents`: digests of the files at the experiment's paths;
  /// `remarks`: remarks printed so far.
  RunState(const RunFolder& folder, const Experiment& experiment, at::Device device,
           const Value& contents, const Value& remarks, const std::vector<std::string>& command,
           Team& team)
      : folder_(folder), first_(team.first()) {
    const BuildInfo& build = build_info();
    set("state", Value::of("running"));
    set("name", Value::of(experiment.name));
    set("digest", Value::of(experiment.digest));
    set("identity", Value::of(experiment.identity));
    set("seed", Value::of(static_cast<std::int64_t>(experiment.train.seed)));
    set("pipewright", Value::of(build.version));
    set("libtorch", Value::of(build.torch_version));
    set("commit", Value::of(build.commit));
    Value words = Value::sequence();
    for (const std::string& word : command) words.items.push_back(Value::of(word));
    set("command", words);
    set("contents", contents);
    set("plugins", plugins_value());
    set("machine", Value::of(host_name()));
    set("processor", Value::of(device_model(device)));
    set("instruction_set", Value::of(instruction_set()));
    set("cores", Value::of(static_cast<std::int64_t>(std::thread::hardware_concurrency())));
    set("processes", Value::of(static_cast<std::int64_t>(team.size())));
    set("started", Value::of(now_text()));
    set("remarks", remarks);
    if (team.first()) folder_.write_state(run_);
  }

  /// Records what the last evaluation measured.
  void measured(const Value& metrics) { set("final", metrics); }

  /// Records a failure. It throws nothing, so that the failure itself is reported even if this
  /// cannot be written.
  void fail(const Error& error) {
    const bool interrupted = error.kind() == ErrorKind::Interrupted;
    try {
      // If a link breaks, both processes report the other's silence; the first report is kept.
      if (recorded_state(folder_) == "running")
        end(interrupted ? "interrupted" : "failed", error.what(), static_cast<int>(error.kind()));
    } catch (const std::exception&) {
    }
  }

  void end(const std::string& state, const std::string& error = {}, int exit_code = 0) {
    if (!first_) run_ = read_run_json(folder_);  // process 0 has recorded more
    set("state", Value::of(state));
    set("finished", Value::of(now_text()));
    set("wall_seconds",
        Value::of(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()));
    if (run_.find("processes")->integer == 1) {
      set("processor_seconds", Value::of(processor_seconds() - processor_start_));
      set("peak_memory_bytes", Value::of(peak_memory()));
    }
    if (!error.empty()) set("error", Value::of(error));
    if (exit_code != 0) set("exit_code", Value::of(exit_code));
    folder_.write_state(run_);
  }

 private:
  void set(const std::string& key, Value value) { run_.at_or_add(key) = std::move(value); }

  const RunFolder& folder_;
  bool first_;
  Value run_ = Value::mapping();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double processor_start_ = processor_seconds();
};

/// How a run begins, decided by process 0 from the folder's content.
struct Beginning {
  Resumption what = Resumption::Begin;
  Value earlier = Value::mapping();  ///< run.json of earlier sessions; empty: there are none
  std::string remark;
};

/// Decides how to begin; only reads the folder. Throws Error{Experiment} if its content forbids it.
Beginning find_beginning(const RunFolder& folder, const Experiment& experiment,
                         const RunChoices& choices) {
  std::error_code none;
  if (choices.overwrite || !std::filesystem::exists(folder.path() / "run.json", none)) return {};
  Value run = read_run_json(folder);
  if (!choices.resume) {
    const Value* const found = run.find("state");
    const std::string state = found != nullptr ? found->text : "unknown";
    throw Error(ErrorKind::Experiment,
                concat("the folder holds a run already (", state == "running" ? "killed" : state,
                       "); give --resume to go on, --overwrite to begin anew, or another --out"),
                folder.path().string());
  }
  const ResumptionChoice choice = resumption(folder, run, experiment);
  return {choice.what, std::move(run), choice.remark};
}

/// Locks the folder and decides how to begin. The folder of a run that has ended is first only
/// read, and not locked if nothing is left to do.
Beginning take_folder(const RunFolder& folder, const Experiment& experiment,
                      const RunChoices& choices, std::unique_ptr<FolderLock>& lock) {
  const std::string state = recorded_state(folder);
  if (state != "missing" && state != "running") {
    Beginning found = find_beginning(folder, experiment, choices);
    if (found.what == Resumption::Leave) return found;
  }
  lock = std::make_unique<FolderLock>(
      claim(folder, {.resume = choices.resume, .overwrite = choices.overwrite}));
  Beginning found = find_beginning(folder, experiment, choices);
  if (found.what == Resumption::Leave) lock.reset();
  return found;
}

/// The remarks of earlier sessions and of this one, for run.json.
Value all_remarks(const Value& earlier, const std::vector<std::string>& now) {
  const Value* const before = earlier.find("remarks");
  Value all = before != nullptr && before->is(Value::Kind::Sequence) ? *before : Value::sequence();
  for (const std::string& remark : now)
    if (std::ranges::count(all.items, Value::of(remark)) == 0)
      all.items.push_back(Value::of(remark));
  return all;
}

/// Checks that a finished run has a checkpoint to be prolonged from. Its final weights do not
/// suffice: its end drained the pipeline where the longer training may not.
void check_prolonged(const Trainer& trainer, const Plan& plan) {
  const Experiment& e = *plan.experiment;
  if (trainer.done() > 0) return;
  throw Error(ErrorKind::Experiment,
              concat("the run is done and has kept no checkpoint to go on from (train.checkpoint); "
                     "give --overwrite to train ",
                     counted(e.train.epochs, "epoch"), " from the beginning, or another --out"),
              e.where("train.epochs"));
}

/// Loads the folder's checkpoint, if there is one, without changing the folder. Returns remarks for
/// the user.
std::vector<std::string> take_up(Trainer& trainer, const Plan& plan, const Beginning& beginning) {
  std::vector<std::string> remarks = trainer.resume();
  if (beginning.what == Resumption::Prolong) check_prolonged(trainer, plan);
  if (trainer.done() > 0)
    for (const std::string& remark : changed_surroundings(beginning.earlier))
      remarks.push_back(remark);
  return remarks;
}

/// Checks that the intra-op threads of this process's workers can be started.
void check_operators_threads(const Plan& plan, const Team& team) {
  const PipelineOptions& p = plan.experiment->pipeline;
  const int workers =
      p.execution == Execution::Threads ? static_cast<int>(plan.training.workers.size()) : 1;
  check_pools(workers, p.threads, team.size() > 1 ? ErrorKind::Worker : ErrorKind::Data);
}

/// `prolongs`: the folder has a finished run of fewer epochs.
void train_in(const RunFolder& folder, const Plan& plan, const RunChoices& choices, bool prolongs,
              Team& team, Trainer& trainer, const std::vector<std::string>& remarks) {
  const Experiment& e = *plan.experiment;
  Progress progress(e.name, plan.drains.minibatches, trainer.done(),
                    choices.quiet || !team.first());
  if (trainer.done() > 0)
    progress.line(concat("going on after ", plan.drains.position_text(trainer.done()),
                         prolongs ? ", the last checkpoint of the shorter training, whose rest is "
                                    "trained again, to the same bits"
                                  : ""));
  for (const std::string& remark : remarks) progress.line(remark);
  for (const std::string& remark :
       {plan.drains.remark(), perturbation_remark(plan.experiment->perturbation)})
    if (!remark.empty()) progress.line(remark);
  trainer.show(&progress);
  trainer.train();
  if (!team.first() || !e.output.trace || trainer.trace().empty()) return;
  const std::string execution = e.resolved.find_path("pipeline.execution")->text;
  write_file(folder.path() / "trace.json",
             render_measured_trace(trainer.traced(), trainer.trace(), execution));
  if (std::ranges::any_of(e.pipeline.devices, [](const auto& name) { return name != "cpu"; }))
    progress.line(
        "measured by the host, which starts operators and does not wait for the devices:");
  progress.line(measured_times_text(trainer.traced(), trainer.trace(), execution == "serial"));
}

/// Writes the last actions of this process's workers. Errors are ignored, because another one is
/// being reported.
void write_last_actions(const RunFolder& folder, const ActionLog& log) {
  try {
    for (int worker = 0; worker < log.workers(); ++worker)
      if (const std::string actions = log.last(worker); !actions.empty())
        folder.write_last_actions(worker, actions);
  } catch (const std::exception&) {
  }
}

/// Collective: process 0 locks the folder and decides how to begin; all get the decision.
Beginning begin_in(const RunFolder& folder, const Experiment& experiment, const RunChoices& choices,
                   Team& team, std::unique_ptr<FolderLock>& lock) {
  Beginning beginning;
  if (team.first()) beginning = take_folder(folder, experiment, choices, lock);
  double what = team.first() ? static_cast<double>(beginning.what) : 0;
  team.sum({&what, 1});
  beginning.what = static_cast<Resumption>(static_cast<int>(what));
  return beginning;
}

/// The exception as our Error; in a team of several it names this process's worker.
Error failure_of(const std::exception& error, const Team& team) {
  if (team.size() == 1) return foreign_error(error);
  const Error known = foreign_error(error, ErrorKind::Worker);
  if (known.kind() != ErrorKind::Worker || !known.where().empty()) return known;
  return Error(known.kind(), known.message(), concat("worker ", team.rank()));
}

/// Sets the team's emergency report and removes it when the run ends, because it refers to locals.
class EmergencyReport {
 public:
  EmergencyReport(Team& team, std::function<void(const Error&, bool speaks)> report) : team_(team) {
    team_.set_emergency(std::move(report));
  }
  ~EmergencyReport() { team_.set_emergency({}); }
  EmergencyReport(const EmergencyReport&) = delete;
  EmergencyReport& operator=(const EmergencyReport&) = delete;

 private:
  Team& team_;
};

}  // namespace

void run_experiment(const Experiment& given, const std::filesystem::path& path,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop) {
  const RunFolder folder(path);
  std::unique_ptr<FolderLock> claimed;  // held by process 0 to the end
  ActionLog log(given.shape(1).workers());
  std::optional<RunState> state;
  Mutex ending;  // this thread or the team's may report a failure
  const auto end = [&](const Error& error, bool speaks) {
    const Lock lock(ending);
    if (state && speaks) state->fail(error);
    if (state && error.kind() != ErrorKind::Interrupted) write_last_actions(folder, log);
  };
  const EmergencyReport report(team, [&](const Error& error, bool speaks) {
    if (speaks && choices.report)
      choices.report(error);
    else if (speaks)
      print_error("%s\n", error.what());
    end(error, speaks);
  });
  const auto tell = [&](const std::string& text) {
    if (choices.quiet || !team.first()) return;
    print_error("%s: %s\n", given.name.c_str(), text.c_str());
  };
  try {
    const Beginning beginning = begin_in(folder, given, choices, team, claimed);
    if (!beginning.remark.empty()) tell(beginning.remark);
    if (beginning.what == Resumption::Leave) return;
    const Experiment experiment = given.with(
        settle_layout(given,
                      {.runs = path.parent_path(),
                       .recorded = choices.resume ? folder.experiment() : std::filesystem::path(),
                       .tell = tell},
                      team));
    const Plan plan = make_plan(experiment);
    check_memory(plan, team);
    const std::string missing = update_remark(plan.training);
    if (!missing.empty()) tell(concat("warning: ", missing));
    Value contents = Value::mapping();
    if (team.first()) {
      contents = contents_of(experiment, *plan.dataset);
      check_contents(folder, beginning.earlier, contents);
      if (choices.overwrite) folder.clear();  // only once it is known that the run can begin
    }
    team.barrier();
    if (beginning.what == Resumption::Compare) return;
    const auto begin = [&](const std::vector<std::string>& remarks) {
      const Lock lock(ending);
      if (team.first()) folder.write_experiment(experiment.resolved);
      state.emplace(folder, experiment, plan.devices.front(), contents,
                    all_remarks(beginning.earlier, remarks), choices.command, team);
    };
    // The folder of an earlier session is not changed before its run is known to continue.
    const bool fresh = beginning.what == Resumption::Begin;
    if (fresh) begin({});
    check_operators_threads(plan, team);
    Trainer trainer(plan, team, &folder, nullptr, stop);
    trainer.record_in(log);
    std::vector<std::string> remarks;
    if (choices.resume) remarks = take_up(trainer, plan, beginning);
    if (!fresh) begin(remarks);
    train_in(folder, plan, choices, beginning.what == Resumption::Prolong, team, trainer, remarks);
    team.barrier();
    if (!team.first()) return;
    state->measured(final_metrics(trainer.epochs(), trainer.own_metrics()));
    state->end("done");
  } catch (const std::exception& error) {
    const Error settled = team.agree_on(failure_of(error, team));
    end(settled, team.reports_to_user());
    throw settled;
  }
}

}  // namespace pipewright
