// SPDX-License-Identifier: Apache-2.0
#include "core/training/checkpoint.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"
#include "core/config/json.h"
#include "core/experiment/identity.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"
#include "core/training/checkpoint_manifest.h"
#include "core/training/resume_point.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics = "metrics.safetensors";
constexpr const char* kEdges = "edges-";
constexpr const char* kExchange = "exchange-";
constexpr const char* kStash = "stash-";
constexpr const char* kPerturb = "perturb-";
constexpr const char* kHead = "head_after.";
constexpr const char* kLastGradient = "last_gradient";
constexpr const char* kDrift = "drift";
/// Files of a checkpoint: save_checkpoint() syncs their folder once for all.
constexpr Syncs kNamedLater{.name = false};

/// A stage replica that this process holds.
struct HeldStage {
  int index = 0, replica = 0;
  Stage* stage = nullptr;
  std::string head, head_after;  ///< "heads.0.", and that prefix with the layer's name instead
};

std::vector<HeldStage> held(const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages) {
  const auto layers = plan.experiment->stage_layers();
  const std::size_t count = layers.size();
  std::vector<HeldStage> all;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i]) continue;
    const std::size_t index = i % count;
    all.push_back({.index = static_cast<int>(index),
                   .replica = static_cast<int>(i / count),
                   .stage = stages[i].get(),
                   .head = concat("heads.", index, "."),
                   .head_after = concat(kHead, layers[index].back()->name(), ".")});
  }
  return all;
}

/// A tensor's name in a checkpoint. Heads are named after their layer there, because another cut
/// may lack their stage.
std::string saved_name(const HeldStage& of, const std::string& name) {
  return name.starts_with(of.head) ? of.head_after + name.substr(of.head.size()) : name;
}

/// Names of all kinds of optimizer state that a stage has.
std::vector<std::string> slots_of(const HeldStage& of, const Optimizer& optimizer) {
  std::vector<std::string> slots = optimizer.slot_names(of.stage->predicts());
  for (const StateTable& table : optimizer.tables()) slots.push_back(table.name);
  for (const auto& [name, flat] : of.stage->rule_slots()) slots.push_back(name);
  if (of.stage->optimizer_state().last_gradient.defined()) slots.emplace_back(kLastGradient);
  if (of.stage->optimizer_state().drift.defined()) slots.emplace_back(kDrift);
  return slots;
}

NamedTensors buffers_of(const HeldStage& of) {
  NamedTensors all;
  for (auto& [name, tensor] : of.stage->named_buffers())
    all.emplace_back(saved_name(of, name), tensor);
  return all;
}

/// Weights, and the optimizer slots that are in `known`.
NamedTensors learned_by(const HeldStage& of, const Optimizer& optimizer,
                        const std::vector<std::string>& known) {
  NamedTensors all;
  for (auto& [name, tensor] : of.stage->named_parameters())
    all.emplace_back(saved_name(of, name), tensor);
  OptimizerState& state = of.stage->optimizer_state();
  const auto& entries = of.stage->layout().entries;
  const auto add = [&](const std::string& slot, const auto& tensor_of) {
    if (std::ranges::count(known, slot) == 0) return;
    for (std::size_t p = 0; p < entries.size(); ++p)
      if (const at::Tensor tensor = tensor_of(p); tensor.defined())
        all.emplace_back(concat("optimizer.", slot, ".", saved_name(of, entries[p].name)), tensor);
  };
  const auto add_flat = [&](const std::string& slot, const at::Tensor& flat) {
    if (flat.defined()) add(slot, [&](std::size_t p) { return entries[p].of(flat); });
  };
  const auto slots = optimizer.slot_names(of.stage->predicts());
  for (std::size_t s = 0; s < slots.size(); ++s) add_flat(slots[s], state.slots[s]);
  const auto tables = optimizer.tables();
  for (std::size_t t = 0; t < tables.size(); ++t)
    add(tables[t].name, [&](std::size_t p) { return state.tables[t][p]; });
  for (const auto& [name, flat] : of.stage->rule_slots()) add_flat(name, flat);
  add_flat(kLastGradient, state.last_gradient);
  add_flat(kDrift, state.drift);
  return all;
}

/// The tensors to save. Weights and optimizer state are equal in all replicas: only replica 0 saves
/// them.
NamedTensors saved_by(const HeldStage& of, const Optimizer& optimizer) {
  NamedTensors all;
  if (of.replica == 0) all = learned_by(of, optimizer, slots_of(of, optimizer));
  for (auto& named : buffers_of(of)) all.push_back(std::move(named));
  return all;
}

std::string file_name(int stage, int replica) {
  return concat("stage-", stage, replica == 0 ? "" : concat(".replica-", replica), ".safetensors");
}

/// Phase one, on every process: writes its files and returns their descriptions.
Value write_files(const fs::path& folder, const std::vector<HeldStage>& mine,
                  const Optimizer& optimizer) {
  Value files = Value::sequence();
  for (const HeldStage& of : mine) {
    TensorFile file{.tensors = saved_by(of, optimizer)};
    if (of.replica > 0 && file.tensors.empty()) continue;
    const fs::path path = folder / file_name(of.index, of.replica);
    write_safetensors(path, file, kNamedLater);
    CheckpointFile described = described_file(path);
    described.replica = of.replica;
    described.steps = of.stage->optimizer_state().steps;
    if (const auto& scale = of.stage->loss_scale())
      described.loss_scale = SavedLossScale{scale->scale, scale->since, scale->skipped};
    files.items.push_back(described.value());
  }
  return files;
}

/// The versions of a stage that its next schedule reads besides the latest.
struct Stash {
  Stage* stage = nullptr;
  NamedTensors state() const { return stage->named_earlier(); }
  void restore(const NamedTensors& saved) const { stage->restore_earlier(saved); }
};

/// Indexed as the stages; null where there are no such versions.
std::vector<std::unique_ptr<Stash>> stashes(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::vector<std::unique_ptr<Stash>> all;
  for (const auto& stage : stages)
    all.push_back(stage && stage->weights().earlier() > 0
                      ? std::make_unique<Stash>(Stash{.stage = stage.get()})
                      : nullptr);
  return all;
}

/// What waits in a stage of a disturbed training. Gradients are equal in all replicas, and only
/// replica 0 evaluates, so only that one saves.
struct Waiting {
  HeldStage of;

  NamedTensors state() const {
    NamedTensors all = of.stage->named_waiting();
    for (auto& [name, tensor] : all) rename(name, of.head, of.head_after);
    return all;
  }
  void restore(NamedTensors saved) const {
    for (auto& [name, tensor] : saved) rename(name, of.head_after, of.head);
    of.stage->restore_waiting(saved);
  }

 private:
  /// Exchanges the prefix of what follows the first '/'.
  static void rename(std::string& name, const std::string& from, const std::string& to) {
    const std::size_t begin = name.find('/') + 1;
    if (begin > 0 && name.compare(begin, from.size(), from) == 0)
      name.replace(begin, from.size(), to);
  }
};

/// Indexed as the stages; null for stages that save nothing.
std::vector<std::unique_ptr<Waiting>> waiting_in(const std::vector<HeldStage>& mine,
                                                 std::size_t stages) {
  std::vector<std::unique_ptr<Waiting>> all(stages);
  for (const HeldStage& of : mine)
    if (of.replica == 0)
      all[static_cast<std::size_t>(of.index)] = std::make_unique<Waiting>(Waiting{of});
  return all;
}

/// Throws Error{Data} if the checkpoint has not given back all that waited.
void check_waiting(const std::vector<HeldStage>& mine, const fs::path& where) {
  for (const HeldStage& of : mine)
    if (const std::string name = of.stage->missing_waiting(); !name.empty())
      throw Error(ErrorKind::Data, concat("has no tensor '", name, "' in any of its files"),
                  where.string());
}

/// File name of the state of an edge's ends or an exchange: "edges-2.replica-0.safetensors".
std::string memory_name(const char* kind, std::size_t i, const Plan& plan) {
  const auto count = static_cast<std::size_t>(plan.experiment->pipeline.stages);
  return concat(kind, i % count, ".replica-", i / count, ".safetensors");
}

/// Phase one for the state of edges' ends or of exchanges.
template <class Part>
void write_memories(const fs::path& folder, const Plan& plan, const char* kind,
                    const std::vector<std::unique_ptr<Part>>& parts, Value& files) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) continue;
    TensorFile file{.tensors = parts[i]->state()};
    if (file.tensors.empty()) continue;
    const fs::path path = folder / memory_name(kind, i, plan);
    write_safetensors(path, file, kNamedLater);
    files.items.push_back(described_file(path).value());
  }
}

/// Restores such a file into the part that wrote it. `check`: this process has not verified the
/// file.
template <class Part>
void read_memory(const fs::path& folder, const CheckpointFile& file, const Plan& plan,
                 const char* kind, const std::vector<std::unique_ptr<Part>>& parts, bool check) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i] || file.name != memory_name(kind, i, plan)) continue;
    const fs::path path = folder / file.name;
    if (check) check_file(path, file);
    try {
      parts[i]->restore(read_safetensors(path).tensors);
    } catch (const Error& error) {
      if (!error.where().empty()) throw;
      throw Error(error.kind(), error.message(), path.string());
    }
  }
}

/// Restores what waited in a stage, into the stages that have its layers now. `check` as above.
void read_waiting(const fs::path& path, const CheckpointFile& file,
                  const std::vector<HeldStage>& mine, bool check) {
  if (check) check_file(path, file);
  const TensorFile content = read_safetensors(path);
  try {
    for (const HeldStage& of : mine) Waiting{of}.restore(content.tensors);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), path.string());
  }
}

static_assert(SavedLossScale::kLargest == LossScale::kLargest);

/// Restores the stages' loss scales. A replica without a file of its own has that of replica 0, as
/// it has its weights.
void read_loss_scales(const CheckpointManifest& manifest, const std::vector<HeldStage>& mine) {
  for (const HeldStage& of : mine)
    for (const int replica : {0, of.replica}) {
      const auto file =
          std::ranges::find(manifest.files, file_name(of.index, replica), &CheckpointFile::name);
      if (file != manifest.files.end() && file->loss_scale && of.stage->loss_scale())
        of.stage->loss_scale() = {.scale = file->loss_scale->scale,
                                  .since = file->loss_scale->since,
                                  .skipped = file->loss_scale->skipped};
    }
}

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
          .identity = e.identity,
          .layout = layout_of(e.resolved)};
}

/// The tensors to load, by name and by the replica whose files have them.
class Wanted {
 public:
  Wanted(const std::vector<HeldStage>& mine, const Optimizer& optimizer,
         const CheckpointManifest& manifest) {
    int replicas = 1;
    for (const CheckpointFile& file : manifest.files)
      replicas = std::max(replicas, file.replica + 1);
    for (const HeldStage& of : mine) {
      of.stage->optimizer_state().steps = 0;
      for (auto& [name, tensor] : learned_by(of, optimizer, manifest.slots))
        add(0, name, tensor, of.stage);
      for (auto& [name, tensor] : buffers_of(of))
        add(of.replica < replicas ? of.replica : 0, name, tensor, of.stage);
    }
  }

  bool empty() const { return waiting_.empty(); }

  void take(const TensorFile& content, const CheckpointFile& file, const fs::path& path) {
    for (const auto& [name, saved] : content.tensors) {
      const auto [begin, end] = waiting_.equal_range({file.replica, name});
      for (auto each = begin; each != end; ++each) {
        auto& [tensor, stage] = each->second;
        if (saved.sizes() != tensor.sizes())
          throw Error(ErrorKind::Data,
                      concat("tensor '", name, "' has shape ", list_text(saved.sizes()),
                             "; this experiment's has ", list_text(tensor.sizes())),
                      path.string());
        tensor.copy_(saved);
        std::int64_t& steps = stage->optimizer_state().steps;
        steps = std::max(steps, file.steps);
      }
      waiting_.erase(begin, end);
    }
  }

  /// Gives up heads that now follow other layers, which stay initialised. Returns the number of
  /// their tensors.
  std::size_t drop_heads() {
    return std::erase_if(waiting_, [](const auto& each) {
      return each.first.second.find(kHead) != std::string::npos;
    });
  }

  void throw_if_any(const fs::path& where) const {
    if (empty()) return;
    throw Error(ErrorKind::Data,
                concat("has no tensor '", waiting_.begin()->first.second, "' in any of its files"),
                where.string());
  }

 private:
  void add(int replica, const std::string& name, const at::Tensor& tensor, Stage* stage) {
    waiting_.emplace(std::pair(replica, name), std::pair(tensor, stage));
  }

  std::multimap<std::pair<int, std::string>, std::pair<at::Tensor, Stage*>> waiting_;
};

/// Checks that a checkpoint after so many mini-batches of a training of `epochs` epochs is also one
/// of this plan: more must be left to train, and every learning rate so far must be equal. Drain
/// points do not depend on how many epochs follow.
void check_same_past(const Plan& plan, std::int64_t minibatches, int epochs) {
  const Experiment& e = *plan.experiment;
  const std::int64_t per_epoch = plan.minibatches, now = e.train.epochs;
  const std::string change = concat("train.epochs ", epochs, " → ", now);
  if (minibatches >= plan.drains.minibatches)
    throw Error(ErrorKind::Experiment,
                concat(change, ": the training is beyond that, its last checkpoint is after ",
                       plan.drains.position_text(minibatches),
                       "; ask for more epochs, or give another --out"),
                e.where("train.epochs"));
  if (now == epochs) return;
  const std::int64_t stride = e.lr_schedule.per_step() ? 1 : per_epoch;
  for (std::int64_t step = 0; step < minibatches; step += stride) {
    const double was = e.learning_rate(step, per_epoch, epochs);
    const double would_be = e.learning_rate(step, per_epoch, now);
    if (was == would_be) continue;
    const std::string at = e.lr_schedule.per_step() ? plan.drains.position_text(step + 1)
                                                    : concat("epoch ", step / per_epoch + 1);
    throw Error(ErrorKind::Experiment,
                concat(change,
                       ": this is another training from the beginning, because the learning "
                       "rate at ",
                       at, " was ", was, " and would be ", would_be,
                       "; give another --out, or --overwrite to begin anew"),
                e.where("train.epochs"));
  }
}

void check_manifest(const CheckpointManifest& manifest, const Plan& plan, const fs::path& where) {
  if (manifest.identity != plan.experiment->identity)
    throw Error(ErrorKind::Experiment,
                "holds a checkpoint of another experiment; give --overwrite to begin anew",
                where.string());
  check_same_past(plan, manifest.minibatches, manifest.epochs);
}

}  // namespace

void begin_checkpoints(const fs::path& checkpoints, const Plan& plan, Team& team) {
  if (team.first()) commit_manifest(checkpoints, manifest_of(plan, 0));
  team.barrier();
}

void save_checkpoint(const fs::path& checkpoints, const Plan& plan,
                     const std::vector<std::unique_ptr<Stage>>& stages,
                     const std::vector<std::unique_ptr<EdgeEnds>>& edges,
                     const std::vector<std::unique_ptr<GradientExchange>>& exchanges,
                     const TrainingState& state, const RowLogs& logs, Team& team) {
  const Optimizer& optimizer = *plan.experiment->optimizer;
  const std::vector<HeldStage> mine = held(plan, stages);
  CheckpointManifest manifest = manifest_of(plan, state.minibatches);
  const fs::path folder = checkpoints / manifest.folder();
  Value own = write_files(folder, mine, optimizer);
  write_memories(folder, plan, kEdges, edges, own);
  write_memories(folder, plan, kExchange, exchanges, own);
  write_memories(folder, plan, kStash, stashes(stages), own);
  write_memories(folder, plan, kPerturb, waiting_in(mine, stages.size()), own);
  if (!team.first() && !own.items.empty()) sync_folder(folder);
  const auto written = team.gather(to_json(own));
  if (team.first()) {
    for (const std::string& files : written)
      for (CheckpointFile& file : read_files(parse_json(files, "files"), "files"))
        manifest.files.push_back(std::move(file));
    write_training_state(folder / kMetrics, state, kNamedLater);
    sync_folder(folder);
    manifest.files.push_back(described_file(folder / kMetrics));
    manifest.slots = slots_of(mine.front(), optimizer);
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

std::optional<LoadedCheckpoint> load_checkpoint(
    const fs::path& checkpoints, const Plan& plan,
    const std::vector<std::unique_ptr<Stage>>& stages,
    const std::vector<std::unique_ptr<EdgeEnds>>& edges,
    const std::vector<std::unique_ptr<GradientExchange>>& exchanges, Team& team) {
  const ResumePoint point = choose_checkpoint(checkpoints, plan.experiment->identity, team);
  if (!point.manifest) return std::nullopt;
  const CheckpointManifest& manifest = *point.manifest;
  check_manifest(manifest, plan, checkpoints);
  const fs::path folder = checkpoints / manifest.folder();
  LoadedCheckpoint loaded{
      .state = {}, .steps = manifest.steps, .probes = manifest.probes, .remarks = {}};
  if (!point.remark.empty()) loaded.remarks.push_back(point.remark);
  const std::vector<HeldStage> mine = held(plan, stages);
  Wanted wanted(mine, *plan.experiment->optimizer, manifest);
  const bool remembers = same_stages(manifest, plan);
  if (remembers) read_loss_scales(manifest, mine);
  const bool check = team.size() > 1;  // a single process has just verified all files
  bool forgotten = false, unstashed = false;
  for (const CheckpointFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    if (file.name.starts_with(kEdges) || file.name.starts_with(kExchange)) {
      if (remembers) {
        read_memory(folder, file, plan, kEdges, edges, check);
        read_memory(folder, file, plan, kExchange, exchanges, check);
      }
      forgotten = forgotten || !remembers;
      continue;
    }
    if (file.name.starts_with(kStash)) {
      if (remembers) read_memory(folder, file, plan, kStash, stashes(stages), check);
      unstashed = !remembers;
      continue;
    }
    if (file.name.starts_with(kPerturb)) {
      read_waiting(path, file, mine, check);
      continue;
    }
    if (file.name != kMetrics && wanted.empty()) continue;
    if (check) check_file(path, file);
    if (file.name == kMetrics)
      loaded.state = read_training_state(path, manifest.minibatches, plan.minibatches,
                                         plan.experiment->metrics.size() - 1);
    else
      wanted.take(read_safetensors(path), file, path);
  }
  const std::string changes = layout_changes(manifest.layout, layout_of(plan.experiment->resolved));
  if (!changes.empty())
    loaded.remarks.push_back(
        concat("resumed under another layout (", changes,
               "): the result may differ in its bits from that of an uninterrupted run"));
  if (forgotten)
    loaded.remarks.emplace_back(
        "what compression remembers of earlier messages and gradients begins anew, because stages "
        "or replicas are others than before");
  if (unstashed)
    loaded.remarks.emplace_back(
        "the stashed versions from before the checkpoint are those of the checkpoint, because "
        "stages or replicas are others than before");
  if (!remembers && std::ranges::any_of(manifest.files, [](const CheckpointFile& file) {
        return file.loss_scale.has_value();
      }))
    loaded.remarks.emplace_back(
        "loss scales begin anew, because stages or replicas are others than before");
  if (wanted.drop_heads() > 0)
    loaded.remarks.emplace_back(
        "auxiliary heads that stand after other layers than before start anew");
  wanted.throw_if_any(folder);
  check_waiting(mine, folder);
  return loaded;
}

}  // namespace pipewright
