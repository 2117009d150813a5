#include "core/experiment/run.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/experiment/measured_balance.h"
#include "core/experiment/plan.h"
#include "core/experiment/plugins.h"
#include "core/experiment/profiling.h"
#include "core/experiment/progress.h"
#include "core/experiment/run_folder.h"
#include "core/experiment/trainer.h"
#include "core/runtime/build_info.h"
#include "core/schedule/render.h"

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

/// The plugins in force, each with its path and the SHA-256 of its file.
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

/// run.json as it grows: written when the run starts, and again however it ends.
class RunState {
 public:
  RunState(const RunFolder& folder, const Experiment& experiment, Team& team) : folder_(folder) {
    const BuildInfo& build = build_info();
    set("state", Value::of("running"));
    set("name", Value::of(experiment.name));
    set("digest", Value::of(experiment.digest));
    set("identity", Value::of(experiment.identity));
    set("seed", Value::of(static_cast<std::int64_t>(experiment.train.seed)));
    set("pipewright", Value::of(build.version));
    set("libtorch", Value::of(build.torch_version));
    set("plugins", plugins_value());
    set("machine", Value::of(machine_name()));
    set("cores", Value::of(static_cast<std::int64_t>(std::thread::hardware_concurrency())));
    set("processes", Value::of(static_cast<std::int64_t>(team.size())));
    set("started", Value::of(now_text()));
    if (team.first()) folder_.write_state(run_);
  }

  /// The same where an error is on its way: it is the one to tell, even if the disk that caused it
  /// does not take this either.
  void fail(const std::string& how, const std::string& error) {
    try {
      end(how, error);
    } catch (const Error&) {
    }
  }

  void end(const std::string& state, const std::string& error = {}) {
    set("state", Value::of(state));
    set("finished", Value::of(now_text()));
    set("wall_seconds",
        Value::of(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()));
    if (!error.empty()) set("error", Value::of(error));
    folder_.write_state(run_);
  }

 private:
  void set(const std::string& key, Value value) { run_.at_or_add(key) = std::move(value); }

  const RunFolder& folder_;
  Value run_ = Value::mapping();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What a killed process was writing: files that never got their final names.
template <class Iterator>
void remove_parts(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> parts;
  for (const auto& entry : Iterator(folder, ignored))
    if (entry.path().extension() == ".part") parts.push_back(entry.path());
  for (const auto& part : parts) std::filesystem::remove(part, ignored);
}

/// Whether there is anything left to do in the folder.
bool prepare_folder(const RunFolder& folder, const Experiment& experiment,
                    const RunChoices& choices) {
  const std::string state = folder.state();
  if (choices.overwrite) {
    folder.clear();
    return true;
  }
  if (state == "missing") return true;
  if (!choices.resume)
    throw Error(ErrorKind::Experiment,
                concat("the folder holds a run already (", state,
                       "); give --resume to go on, --overwrite to begin anew, or another --out"),
                folder.path().string());
  const Value run = load_yaml(folder.path() / "run.json");
  // What is finished must be what is asked for; what is not may go on under another layout.
  const bool done = state == "done";
  const Value* const of = run.find(done ? "digest" : "identity");
  if (of == nullptr || of->text != (done ? experiment.digest : experiment.identity))
    throw Error(ErrorKind::Experiment,
                "the folder holds a run of another experiment; give --overwrite or another --out",
                folder.path().string());
  return !done;
}

/// "epoch 3", or "mini-batch 5 of epoch 4", counted from 1.
std::string position_text(std::int64_t minibatches, int per_epoch) {
  const std::int64_t whole = minibatches / per_epoch, more = minibatches % per_epoch;
  return more == 0 ? concat("epoch ", whole) : concat("mini-batch ", more, " of epoch ", whole + 1);
}

void train_in(const RunFolder& folder, const Plan& plan, const RunChoices& choices, Team& team,
              ActionLog& log, const std::atomic<bool>* stop) {
  const Experiment& e = *plan.experiment;
  Trainer trainer(plan, team, &folder, nullptr, stop);
  trainer.record_in(log);
  std::vector<std::string> remarks;
  if (choices.resume) remarks = trainer.resume();
  Progress progress(e.name, plan.drains.minibatches, trainer.done(),
                    choices.quiet || !team.first());
  if (trainer.done() > 0)
    progress.line(concat("going on after ", position_text(trainer.done(), plan.minibatches)));
  for (const std::string& remark : remarks) progress.line(remark);
  if (const std::string remark = plan.drains.remark(); !remark.empty()) progress.line(remark);
  trainer.show(&progress);
  trainer.train();
  if (team.first() && e.output.trace && !trainer.trace().empty())
    write_file(folder.path() / "trace.json", render_trace(trainer.traced(), trainer.trace()));
}

/// Of this process's workers. An error is on its way: it is the one to tell, not that the disk does
/// not take this either.
void write_last_actions(const RunFolder& folder, const ActionLog& log) {
  try {
    for (int worker = 0; worker < log.workers(); ++worker)
      if (const std::string actions = log.last(worker); !actions.empty())
        folder.write_last_actions(worker, actions);
  } catch (const Error&) {
  }
}

/// Whether the run goes on, as process 0 finds it, which alone touches the folder.
bool begin_in(const RunFolder& folder, const Experiment& experiment, const RunChoices& choices,
              Team& team) {
  double go_on = 0;
  if (team.first()) {
    remove_parts<std::filesystem::directory_iterator>(folder.path());
    remove_parts<std::filesystem::recursive_directory_iterator>(folder.checkpoints());
    go_on = prepare_folder(folder, experiment, choices) ? 1 : 0;
  }
  team.sum({&go_on, 1});
  return go_on != 0;
}

}  // namespace

void run_experiment(Experiment& experiment, const std::filesystem::path& path,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop) {
  const RunFolder folder(path);
  ActionLog log(experiment.shape(1).workers());
  std::optional<RunState> state;
  std::mutex ending;  // a failure is reported by this thread or by the team's
  const auto end = [&](const Error& error, bool speaks) {
    const std::lock_guard lock(ending);
    const bool interrupted = error.kind() == ErrorKind::Interrupted;
    if (state && speaks) state->fail(interrupted ? "interrupted" : "failed", error.what());
    if (state && !interrupted) write_last_actions(folder, log);
  };
  team.set_emergency([&](const Error& error, bool speaks) {
    if (speaks) std::fprintf(stderr, "%s\n", error.what());
    end(error, speaks);
  });
  try {
    if (!begin_in(folder, experiment, choices, team)) return;
    settle_balance(experiment,
                   {.runs = path.parent_path(),
                    .recorded = choices.resume ? folder.experiment() : std::filesystem::path(),
                    .tell =
                        [&](const std::string& text) {
                          if (choices.quiet) return;
                          std::fprintf(stderr, "%s: %s\n", experiment.name.c_str(), text.c_str());
                        }},
                   team);
    const Plan plan = make_plan(experiment);
    {
      const std::lock_guard lock(ending);
      state.emplace(folder, experiment, team);
    }
    if (team.first()) folder.write_experiment(experiment.resolved);
    train_in(folder, plan, choices, team, log, stop);
    team.barrier();
    if (team.first()) state->end("done");
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    const Error settled = team.settle(
        known != nullptr
            ? *known
            : Error(ErrorKind::Bug, concat("this is a bug in Pipewright: ", error.what())));
    end(settled, team.speaks());
    team.set_emergency({});
    throw settled;
  }
  team.set_emergency({});
}

}  // namespace pipewright
