// SPDX-License-Identifier: Apache-2.0
#include "core/training/resume.h"

#include <algorithm>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/config/json.h"
#include "core/experiment/catalogue.h"
#include "core/experiment/identity.h"
#include "core/experiment/plugins.h"
#include "core/measuring/measured_device.h"
#include "core/records/run_state.h"
#include "core/runtime/build_info.h"
#include "core/training/contents.h"
#include "core/training/processor.h"

namespace pipewright {
namespace {

/// The run's experiment.yaml; Null if it cannot be read.
Value recorded(const RunFolder& folder) {
  try {
    return load_yaml(folder.experiment());
  } catch (const Error&) {
    return {};
  }
}

[[noreturn]] void refuse_another(const RunFolder& folder, const Value& run,
                                 const Experiment& experiment) {
  const Value before = recorded(folder);
  const std::string version = text_at(run, "pipewright");
  std::string why =
      before.is(Value::Kind::Mapping)
          ? identity_changes(before, experiment.resolved, path_options(experiment.resolved))
          : std::string();
  if (version != build_info().version)
    why = concat("it was written by Pipewright ", version);
  else if (why.empty())
    why = "its experiment.yaml does not say how it differs";
  throw experiment_error(folder.path(), "the folder holds a run of another experiment (", why,
                         "); give --overwrite or another --out");
}

/// The section `output`, which decides which files a finished run has left, but no bit of them.
Value outcome_of(const Value& resolved) {
  Value outcome = Value::mapping();
  if (const Value* output = resolved.find("output")) outcome.at_or_add("output") = *output;
  return without_idle_output(std::move(outcome));
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : concat(a, ", ", b);
}

bool same_paths(const Value& before, const Value& now) {
  return std::ranges::all_of(path_options(now), [&](const std::string& path) {
    const Value *const old = before.find_path(path), *const value = now.find_path(path);
    return path.starts_with("pipeline.") || (old != nullptr && value != nullptr && *old == *value);
  });
}

/// The choice for a finished run of the same identity.
ResumptionChoice choice_of_finished(const RunFolder& folder, const Value& before,
                                    const Experiment& experiment) {
  const Value& now = experiment.resolved;
  const Value* const epochs = before.find_path("train.epochs");
  if (epochs == nullptr)
    throw experiment_error(folder.path(),
                           "the run is done, but its experiment is unknown, because its "
                           "experiment.yaml cannot be read; give --overwrite or another --out");
  const Value* const steps = before.find_path("train.steps");
  const TrainOptions& train = experiment.train;
  const TrainOptions was{.epochs = static_cast<int>(epochs->integer),
                         .steps = steps != nullptr ? steps->integer : 0};
  const bool in_steps = train.steps > 0;
  if (in_steps != (was.steps > 0))
    throw experiment_error(folder.path(), "the run is done after ", was.length_text(), ", and ",
                           train.length_text(),
                           " are asked for, of which nothing says whether they are more; its "
                           "results stay as they are");
  if (was.epochs < train.epochs || was.steps < train.steps) return {Resumption::Prolong, {}};
  if (was.epochs > train.epochs || was.steps > train.steps)
    throw experiment_error(folder.path(), "the run is done after ", was.length_text(), ", train.",
                           in_steps ? "steps " : "epochs ", in_steps ? train.steps : train.epochs,
                           " asks for fewer; its results stay as they are");
  const Value layout = layout_of(now), old_layout = layout_of(before);
  const std::string other = joined(layout_changes(old_layout, layout),
                                   changes_between(outcome_of(before), outcome_of(now)));
  if (!other.empty())
    throw experiment_error(folder.path(), "the run is done already, in another way (", other,
                           "); its results stay as they are: give another --out, or --overwrite");
  if (!same_paths(before, now)) return {Resumption::Compare, {}};
  const std::string how = changes_between(old_layout, layout);
  return {Resumption::Leave,
          how.empty()
              ? std::string()
              : concat("it was trained under another layout, which changes no bit (", how, ")")};
}

}  // namespace

ResumptionChoice resumption(const RunFolder& folder, const Value& run,
                            const Experiment& experiment) {
  const bool done = text_at(run, "state") == "done";
  std::error_code none;
  if (done && experiment.output.weights && !std::filesystem::exists(folder.final_weights(), none))
    throw experiment_error(
        folder.path(),
        "the run is done, but its final.safetensors is gone; give --overwrite to train it again");
  if (done && text_at(run, "digest") == experiment.digest) return {Resumption::Leave, {}};
  if (text_at(run, "identity") != experiment.identity) refuse_another(folder, run, experiment);
  if (!done) return {Resumption::GoOn, {}};
  return choice_of_finished(folder, recorded(folder), experiment);
}

void check_contents(const RunFolder& folder, const Value& run, const Value& contents) {
  const Value* const before = run.find("contents");
  const std::string changed =
      before != nullptr ? changed_contents(*before, contents) : std::string();
  if (!changed.empty())
    throw experiment_error(folder.path(), "the folder holds a run of another experiment (", changed,
                           " had another content then); give --overwrite or another --out");
}

void check_plugins(const RunFolder& folder) {
  const Value run = read_run_json(folder);
  const Value* const plugins = run.find("plugins");
  if (plugins == nullptr) return;
  for (const Value& plugin : plugins->items) {
    const std::string path = text_at(plugin, "path"), sha256 = text_at(plugin, "sha256");
    const bool loaded = std::ranges::any_of(loaded_plugins(), [&](const Plugin& each) {
      return each.path == path || each.sha256 == sha256;
    });
    if (!loaded)
      throw experiment_error(
          folder.path(),
          "the run uses a plugin, and a folder loads no code by itself; add --plugin ",
          shell_quoted(path));
  }
}

std::vector<std::string> changed_surroundings(const Value& run) {
  std::vector<std::string> remarks;
  const auto compare = [&](const char* key, const std::string& what, const std::string& now) {
    const std::string before = text_at(run, key);
    if (before.empty() || before == now) return;
    remarks.push_back(concat(what, " is not the one that the run was begun with (", before, " → ",
                             now, "): bits may differ from those of an uninterrupted run"));
  };
  compare("processor", "the processor", processor_name());
  compare("instruction_set", "the instruction set", instruction_set());
  compare("libtorch", "the version of LibTorch", build_info().torch_version);
  if (const Value* plugins = run.find("plugins"))
    for (const Value& plugin : plugins->items)
      for (const Plugin& each : loaded_plugins())
        if (each.path == text_at(plugin, "path") && each.sha256 != text_at(plugin, "sha256"))
          remarks.push_back(concat("the plugin ", each.path.string(),
                                   " has changed since the run was begun: the result may differ"));
  return remarks;
}

}  // namespace pipewright
