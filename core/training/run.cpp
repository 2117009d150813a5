// SPDX-License-Identifier: Apache-2.0
#include "core/training/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/error_at.h"
#include "core/base/mutex.h"
#include "core/base/wording.h"
#include "core/drawing/render.h"
#include "core/experiment/plugins.h"
#include "core/measuring/measured_device.h"
#include "core/measuring/measured_layout.h"
#include "core/nn/numerics.h"
#include "core/records/run_claim.h"
#include "core/records/run_folder.h"
#include "core/records/run_state.h"
#include "core/runtime/build_info.h"
#include "core/runtime/devices/intra_op_threads.h"
#include "core/schedule/remarks.h"
#include "core/system/file.h"
#include "core/system/foreign_error.h"
#include "core/system/host_name.h"
#include "core/system/terminal.h"
#include "core/traces/measured_times.h"
#include "core/traces/trace_file.h"
#include "core/training/contents.h"
#include "core/training/memory_need.h"
#include "core/training/plan.h"
#include "core/training/processor.h"
#include "core/training/progress.h"
#include "core/training/resume.h"
#include "core/training/trainer.h"

namespace pipewright {
namespace {

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

/// Facts on experiment, program and machine for run.json. `contents`: digests of the files at the
/// experiment's paths; `device`: the first worker's.
Value facts_of(const Experiment& experiment, const Value& contents, at::Device device,
               const std::vector<std::string>& command, const Team& team) {
  const BuildInfo& build = build_info();
  Value words = Value::sequence();
  for (const std::string& word : command) words.items.push_back(Value::of(word));
  Value facts = Value::mapping();
  const auto set = [&](const char* key, Value value) { facts.at_or_add(key) = std::move(value); };
  set("name", Value::of(experiment.name));
  set("digest", Value::of(experiment.digest));
  set("identity", Value::of(experiment.identity));
  set("seed", Value::of(static_cast<std::int64_t>(experiment.train.seed)));
  set("pipewright", Value::of(build.version));
  set("libtorch", Value::of(build.torch_version));
  set("commit", Value::of(build.commit));
  set("command", words);
  set("contents", contents);
  set("plugins", plugins_value());
  set("machine", Value::of(host_name()));
  set("processor", Value::of(device_model(device)));
  set("instruction_set", Value::of(instruction_set()));
  set("cores", Value::of(static_cast<std::int64_t>(std::thread::hardware_concurrency())));
  set("numerics", recorded_numerics(!device.is_cpu()));
  set("processes", Value::of(static_cast<std::int64_t>(team.size())));
  return facts;
}

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
    throw experiment_error(
        folder.path(), "the folder holds a run already (", state == "running" ? "killed" : state,
        "); give --resume to go on, --overwrite to begin anew, or another --out");
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
  throw experiment_error(e.where("train.epochs"),
                         "the run is done and has kept no checkpoint to go on from "
                         "(train.checkpoint); give --overwrite to train ",
                         e.train.length_text(), " from the beginning, or another --out");
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

/// Collective: every process sees the experiment that the first one has written into the folder.
/// Throws Error{Data} otherwise, because each writes a part of the checkpoints there.
void check_shared(const RunFolder& folder, Team& team) {
  if (team.size() == 1) return;
  team.barrier();  // it has been written
  constexpr int kTries = 50;
  std::string seen;
  // Another host's file may take a moment to appear.
  for (int i = 0; i < kTries && seen.empty(); ++i) {
    std::error_code error;
    if (std::filesystem::exists(folder.experiment(), error)) seen = read_file(folder.experiment());
    if (seen.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const auto views = team.gather(concat(host_name(), "\n", seen));
  for (std::size_t rank = 1; rank < views.size(); ++rank) {
    const std::size_t end = views[rank].find('\n');
    if (views[rank].substr(end + 1) == seen) continue;
    throw data_error(folder.path(), "rank ", rank, " on ", views[rank].substr(0, end),
                     " does not see what rank 0 on ", host_name(),
                     " has written there; --out has to be a folder shared by all hosts");
  }
  team.barrier();  // the others end here if process 0 has thrown
}

/// The exception as our Error; in a team of several it names this process's worker.
Error failure_of(const std::exception& error, const Team& team) {
  if (team.size() == 1) return foreign_error(error);
  const Error known = foreign_error(error, ErrorKind::Worker);
  if (known.kind() != ErrorKind::Worker || !known.where().empty()) return known;
  return Error(known.kind(), known.message(), concat("worker ", team.rank()));
}

/// One session of a run: from the claim on its folder to the last entry in run.json. While it
/// lives, the team's own thread may report failures that this thread cannot.
class RunSession {
 public:
  RunSession(const Experiment& given, const std::filesystem::path& path, const RunChoices& choices,
             Team& team, const std::atomic<bool>* stop)
      : given_(given),
        folder_(path),
        choices_(choices),
        team_(team),
        stop_(stop),
        log_(given.shape(1).workers()) {
    team_.set_emergency([this](const Error& error, bool speaks) { report(error, speaks); });
  }
  ~RunSession() { team_.set_emergency({}); }
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  void run() {
    try {
      begin_and_train();
    } catch (const std::exception& error) {
      const Error settled = team_.agree_on(failure_of(error, team_));
      record_failure(settled, team_.reports_to_user());
      throw settled;
    }
  }

 private:
  void begin_and_train();
  Beginning find_what_to_do();
  Value checked_contents(const Plan& plan);
  void record_beginning(const Plan& plan, const Value& contents,
                        const std::vector<std::string>& remarks);
  void train(const Plan& plan, Trainer& trainer, const std::vector<std::string>& remarks);
  void write_trace(const Experiment& experiment, const Trainer& trainer, Progress& progress);
  void tell(const std::string& text) const;
  void report(const Error& error, bool speaks);
  void record_failure(const Error& error, bool speaks);
  void write_last_actions() const;

  const Experiment& given_;  ///< its layout may be open
  const RunFolder folder_;
  const RunChoices& choices_;
  Team& team_;
  const std::atomic<bool>* stop_;
  std::unique_ptr<FolderLock> claimed_;  ///< held by process 0 to the end
  Beginning beginning_;
  ActionLog log_;
  Mutex recording_;  ///< this thread or the team's may record a failure
  std::optional<RunState> state_ PIPEWRIGHT_GUARDED_BY(recording_);  ///< none before the run begins
};

void RunSession::begin_and_train() {
  beginning_ = find_what_to_do();
  if (!beginning_.remark.empty()) tell(beginning_.remark);
  if (beginning_.what == Resumption::Leave) return;
  const Experiment experiment = given_.with(
      settle_layout(given_,
                    {.runs = folder_.path().parent_path(),
                     .recorded = choices_.resume ? folder_.experiment() : std::filesystem::path(),
                     .tell = [this](const std::string& text) { tell(text); },
                     .of_sweep = std::filesystem::exists(folder_.path() / "point.json")},
                    team_));
  const Plan plan = make_plan(experiment);
  compute_with(numerics_of(experiment.resolved),
               !std::ranges::all_of(plan.devices, &at::Device::is_cpu));
  check_memory(plan, team_);
  if (const std::string missing = update_remark(plan.training); !missing.empty())
    tell(concat("warning: ", missing));
  const Value contents = checked_contents(plan);
  team_.barrier();
  if (beginning_.what == Resumption::Compare) return;
  // The folder of an earlier session is not changed before its run is known to continue.
  const bool fresh = beginning_.what == Resumption::Begin;
  if (fresh) record_beginning(plan, contents, {});
  check_shared(folder_, team_);
  check_operators_threads(plan, team_);
  Trainer trainer(plan, team_, &folder_, nullptr, stop_);
  trainer.record_in(log_);
  std::vector<std::string> remarks;
  if (choices_.resume) remarks = take_up(trainer, plan, beginning_);
  if (!fresh) record_beginning(plan, contents, remarks);
  train(plan, trainer, remarks);
  team_.barrier();
  const Lock lock(recording_);
  if (team_.first()) state_->done(final_metrics(trainer.epochs(), trainer.own_metrics()));
}

/// Collective: process 0 locks the folder and decides how to begin; all get the decision.
Beginning RunSession::find_what_to_do() {
  Beginning beginning;
  if (team_.first()) beginning = take_folder(folder_, given_, choices_, claimed_);
  double what = team_.first() ? static_cast<double>(beginning.what) : 0;
  team_.sum({&what, 1});
  beginning.what = static_cast<Resumption>(static_cast<int>(what));
  return beginning;
}

/// Process 0 compares data and weights with those of earlier sessions, and empties the folder if
/// that is asked for and the run can begin.
Value RunSession::checked_contents(const Plan& plan) {
  if (!team_.first()) return Value::mapping();
  Value contents = contents_of(*plan.experiment, *plan.dataset);
  check_contents(folder_, beginning_.earlier, contents);
  if (choices_.overwrite) folder_.clear();
  return contents;
}

/// From now on failures are recorded.
void RunSession::record_beginning(const Plan& plan, const Value& contents,
                                  const std::vector<std::string>& remarks) {
  const Lock lock(recording_);
  if (team_.first()) folder_.write_experiment(plan.experiment->resolved);
  state_.emplace(
      folder_, team_.first(),
      facts_of(*plan.experiment, contents, plan.devices.front(), choices_.command, team_),
      all_remarks(beginning_.earlier, remarks));
}

void RunSession::train(const Plan& plan, Trainer& trainer,
                       const std::vector<std::string>& remarks) {
  const Experiment& e = *plan.experiment;
  Progress progress(e.name, plan.drains.minibatches, trainer.done(),
                    choices_.quiet || !team_.first());
  if (trainer.done() > 0)
    progress.line(concat("going on after ", plan.drains.position_text(trainer.done()),
                         beginning_.what == Resumption::Prolong
                             ? ", the last checkpoint of the shorter training; what it trained "
                               "after that is repeated, bit for bit"
                             : ""));
  for (const std::string& remark : remarks) progress.line(remark);
  for (const std::string& remark : plan.remarks()) progress.line(remark);
  trainer.show(&progress);
  trainer.train();
  if (team_.first() && e.output.trace && !trainer.trace().empty())
    write_trace(e, trainer, progress);
}

void RunSession::write_trace(const Experiment& experiment, const Trainer& trainer,
                             Progress& progress) {
  const std::string execution = experiment.resolved.find_path("pipeline.execution")->text;
  const Spans spans = from_first_action(trainer.trace());
  write_file(folder_.path() / "trace.json",
             render_measured_trace(trainer.traced(), spans, execution));
  if (std::ranges::any_of(experiment.pipeline.devices,
                          [](const auto& name) { return name != "cpu"; }))
    progress.line(
        "measured by the host, which starts operators and does not wait for the devices:");
  progress.line(measured_times_text(trainer.traced(), spans, execution == "serial"));
}

void RunSession::tell(const std::string& text) const {
  if (!choices_.quiet && team_.first()) print_error("%s: %s\n", given_.name.c_str(), text.c_str());
}

/// The team's own thread reports a failure in the place of this one.
void RunSession::report(const Error& error, bool speaks) {
  if (speaks && choices_.report)
    choices_.report(error);
  else if (speaks)
    print_error("%s\n", error.what());
  record_failure(error, speaks);
}

void RunSession::record_failure(const Error& error, bool speaks) {
  const Lock lock(recording_);
  if (!state_) return;
  if (speaks) state_->failed(error);
  if (error.kind() != ErrorKind::Interrupted) write_last_actions();
}

/// Writes the last actions of this process's workers. Errors are ignored, because another one is
/// being reported.
void RunSession::write_last_actions() const {
  try {
    for (int worker = 0; worker < log_.workers(); ++worker)
      if (const std::string actions = log_.last(worker); !actions.empty())
        folder_.write_last_actions(worker, actions);
  } catch (const std::exception&) {
  }
}

}  // namespace

void run_experiment(const Experiment& given, const std::filesystem::path& path,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop) {
  RunSession(given, path, choices, team, stop).run();
}

}  // namespace pipewright
