// SPDX-License-Identifier: Apache-2.0
#include "core/training/checkpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error_at.h"
#include "core/config/json.h"
#include "core/experiment/identity.h"
#include "core/training/checkpoint_manifest.h"
#include "core/training/resume_point.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics = "metrics.safetensors";

/// Whether stages and replicas are the same as when the checkpoint was written.
bool same_stages(const CheckpointManifest& manifest, const Plan& plan) {
  const Value now = layout_of(plan.experiment->resolved);
  return std::ranges::all_of(std::array{"stages", "balance", "replicas"}, [&](const char* option) {
    const Value* const before = manifest.layout.find(option);
    return before != nullptr && *before == *now.find(option);
  });
}

CheckpointManifest manifest_of(const Plan& plan, std::int64_t minibatches) {
  const Experiment& e = *plan.experiment;
  return {.minibatches = minibatches,
          .epochs = e.train.epochs,
          .train_steps = e.train.steps,
          .identity = e.identity,
          .layout = layout_of(e.resolved)};
}

/// The largest number of updates to come whose learning rates a prediction reads; 0 where it reads
/// that of the next one only.
std::int64_t furthest_rate(const Program& program) {
  int furthest = 0;
  for (const auto& worker : program.workers)
    for (const Instruction& instruction : worker)
      furthest = std::max(furthest, instruction.updates_ahead);
  return furthest;
}

/// Checks that the checkpoint of a training of another length is also one of this plan: more must
/// be left to train, and every learning rate so far must be equal, and those of the updates beyond
/// it that a prediction has read. Drain points do not depend on how much follows.
void check_same_past(const Plan& plan, const CheckpointManifest& manifest) {
  const Experiment& e = *plan.experiment;
  const TrainOptions before{.epochs = manifest.epochs, .steps = manifest.train_steps};
  const std::int64_t per_epoch = plan.minibatches, minibatches = manifest.minibatches,
                     then = before.length(per_epoch), now = plan.drains.minibatches;
  const std::string option = e.train.steps > 0 ? "train.steps" : "train.epochs";
  const std::string change =
      e.train.steps == 0 && before.steps == 0
          ? concat("train.epochs ", before.epochs, " → ", e.train.epochs)
          : concat("the training's length ", before.length_text(), " → ", e.train.length_text());
  if (minibatches >= plan.drains.minibatches)
    throw experiment_error(e.where(option), change,
                           ": the training is beyond that, its last checkpoint is after ",
                           plan.drains.position_text(minibatches),
                           e.train.steps > 0 ? "; ask for more steps, or give another --out"
                                             : "; ask for more epochs, or give another --out");
  if (now == then) return;
  const std::int64_t stride = e.lr_schedule.per_step() ? 1 : per_epoch;
  const std::int64_t read = std::min(minibatches + furthest_rate(plan.training), now);
  for (std::int64_t step = 0; step < read; step += stride) {
    const double was = e.learning_rate(step, per_epoch, then);
    const double would_be = e.learning_rate(step, per_epoch, now);
    if (was == would_be) continue;
    const std::string at = e.lr_schedule.per_step() ? plan.drains.position_text(step + 1)
                                                    : concat("epoch ", step / per_epoch + 1);
    throw experiment_error(
        e.where(option), change,
        ": this is another training from the beginning, because the learning rate at ", at, " was ",
        was, " and would be ", would_be, "; give another --out, or --overwrite to begin anew");
  }
}

void check_manifest(const CheckpointManifest& manifest, const Plan& plan, const fs::path& where) {
  if (manifest.identity != plan.experiment->identity)
    throw experiment_error(
        where, "holds a checkpoint of another experiment; give --overwrite to begin anew");
  check_same_past(plan, manifest);
}

}  // namespace

void begin_checkpoints(const fs::path& checkpoints, const Plan& plan, Team& team) {
  if (team.first()) commit_manifest(checkpoints, manifest_of(plan, 0));
  team.barrier();
}

void save_checkpoint(const fs::path& checkpoints, const Plan& plan,
                     const std::vector<HeldReplica>& replicas, const TrainingState& state,
                     const RowLogs& logs, Team& team) {
  CheckpointManifest manifest = manifest_of(plan, state.minibatches);
  const fs::path folder = checkpoints / manifest.folder();
  const Value own = write_replicas(folder, replicas);
  if (!team.first() && !own.items.empty()) sync_folder(folder);
  Value part = Value::mapping();
  part.at_or_add("files") = own;
  part.at_or_add("slots") = Value::sequence();
  for (const std::string& slot : slot_names(replicas))
    part.at_or_add("slots").items.push_back(Value::of(slot));
  const auto written = team.gather(to_json(part));
  if (team.first()) {
    for (const std::string& text : written) {
      const Value of_process = parse_json(text, "files");
      for (CheckpointFile& file : read_files(*of_process.find("files"), "files"))
        manifest.files.push_back(std::move(file));
      for (const Value& slot : of_process.find("slots")->items)  // not every stage has every slot
        if (std::ranges::count(manifest.slots, slot.text) == 0) manifest.slots.push_back(slot.text);
    }
    write_training_state(folder / kMetrics, state, {.name = false});
    sync_folder(folder);
    manifest.files.push_back(described_file(folder / kMetrics));
    for (const auto& [log, part] :
         {std::pair(logs.steps, &manifest.steps), std::pair(logs.probes, &manifest.probes)})
      if (log != nullptr) {
        log->sync();
        *part = log->part();
      }
    commit_manifest(checkpoints, manifest);
  }
  team.barrier();  // else a fast process might write new files while old ones are removed
}

std::optional<LoadedCheckpoint> load_checkpoint(const fs::path& checkpoints, const Plan& plan,
                                                const std::vector<HeldReplica>& replicas,
                                                Team& team) {
  const ResumePoint point = choose_checkpoint(checkpoints, plan.experiment->identity, team);
  if (!point.manifest) return std::nullopt;
  const CheckpointManifest& manifest = *point.manifest;
  check_manifest(manifest, plan, checkpoints);
  const fs::path folder = checkpoints / manifest.folder();
  const bool check = team.size() > 1;  // a single process has just verified all files
  const auto metrics = std::ranges::find(manifest.files, kMetrics, &CheckpointFile::name);
  if (metrics == manifest.files.end()) throw data_error(folder, "has no file '", kMetrics, "'");
  if (check) check_file(folder / kMetrics, *metrics);
  LoadedCheckpoint loaded{
      .state = read_training_state(folder / kMetrics, manifest.minibatches, plan.minibatches,
                                   plan.experiment->metrics.size() - 1),
      .steps = manifest.steps,
      .probes = manifest.probes,
      .remarks = {}};
  if (!point.remark.empty()) loaded.remarks.push_back(point.remark);
  const std::string changes = layout_changes(manifest.layout, layout_of(plan.experiment->resolved));
  if (!changes.empty())
    loaded.remarks.push_back(
        concat("resumed under another layout (", changes,
               "): the result may differ from that of an uninterrupted run, in its bits and, where "
               "stages are cut anew, in their delays and in what is clipped over a stage"));
  for (std::string& lost :
       read_replicas(folder, manifest, replicas, same_stages(manifest, plan), check))
    loaded.remarks.push_back(std::move(lost));
  return loaded;
}

}  // namespace pipewright
