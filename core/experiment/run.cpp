#include "core/experiment/run.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/experiment/plan.h"
#include "core/experiment/plugins.h"
#include "core/experiment/progress.h"
#include "core/experiment/run_folder.h"
#include "core/experiment/trainer.h"
#include "core/runtime/build_info.h"
#include "core/schedule/render.h"

namespace pipewright {
namespace {

std::string machine_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

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
  RunState(const RunFolder& folder, const Experiment& experiment) : folder_(folder) {
    const BuildInfo& build = build_info();
    set("state", Value::of("running"));
    set("name", Value::of(experiment.name));
    set("digest", Value::of(experiment.digest));
    set("seed", Value::of(static_cast<std::int64_t>(experiment.train.seed)));
    set("pipewright", Value::of(build.version));
    set("libtorch", Value::of(build.torch_version));
    set("plugins", plugins_value());
    set("machine", Value::of(machine_name()));
    set("cores", Value::of(static_cast<std::int64_t>(std::thread::hardware_concurrency())));
    set("started", Value::of(now_text()));
    folder_.write_state(run_);
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
void remove_parts(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> parts;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".part") parts.push_back(entry.path());
  for (const auto& part : parts) std::filesystem::remove(part, ignored);
}

/// Whether there is anything left to do in the folder.
bool prepare_folder(const RunFolder& folder, const Experiment& experiment,
                    const RunChoices& choices) {
  const std::string state = folder.state();
  if (choices.overwrite) {
    for (const char* file : {"experiment.yaml", "run.json", "steps.csv", "epochs.csv",
                             "final.safetensors", "trace.json", "checkpoint"})
      std::filesystem::remove_all(folder.path() / file);
    return true;
  }
  if (state == "missing") return true;
  if (!choices.resume)
    throw Error(ErrorKind::Experiment,
                concat("the folder holds a run already (", state,
                       "); give --resume to go on, --overwrite to begin anew, or another --out"),
                folder.path().string());
  const Value run = load_yaml(folder.path() / "run.json");
  const Value* digest = run.find("digest");
  if (digest == nullptr || digest->text != experiment.digest)
    throw Error(ErrorKind::Experiment,
                "the folder holds a run of another experiment; give --overwrite or another --out",
                folder.path().string());
  return state != "done";
}

void train_in(const RunFolder& folder, const Plan& plan, const RunChoices& choices, Team& team,
              const std::atomic<bool>* stop) {
  const Experiment& e = *plan.experiment;
  Trainer trainer(plan, team, &folder, nullptr, stop);
  const int done = choices.resume ? trainer.resume() : 0;
  Progress progress(e.name, std::int64_t{e.train.epochs} * plan.minibatches,
                    std::int64_t{done} * plan.minibatches, choices.quiet);
  if (done > 0) progress.line(concat("going on after epoch ", done));
  trainer.show(&progress);
  trainer.train();
  if (e.output.trace && !trainer.trace().empty())
    write_file(folder.path() / "trace.json", render_trace(plan.training.schedule, trainer.trace()));
}

}  // namespace

void run_experiment(Experiment& experiment, const std::filesystem::path& path,
                    const RunChoices& choices, Team& team, const std::atomic<bool>* stop) {
  const RunFolder folder(path);
  remove_parts(folder.path());
  remove_parts(folder.checkpoint().parent_path());
  if (!prepare_folder(folder, experiment, choices)) return;
  const Plan plan = make_plan(experiment);
  folder.write_experiment(experiment.resolved);
  RunState state(folder, experiment);
  try {
    train_in(folder, plan, choices, team, stop);
    state.end("done");
  } catch (const Error& error) {
    state.end(error.kind() == ErrorKind::Interrupted ? "interrupted" : "failed", error.what());
    throw;
  } catch (const std::exception& error) {
    state.end("failed", error.what());
    throw;
  }
}

}  // namespace pipewright
