// SPDX-License-Identifier: Apache-2.0
#include "core/training/held_replica.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/error_at.h"
#include "core/tensor_files/safetensors.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStage = "stage-";
constexpr const char* kHead = "head_after.";
/// Files of a checkpoint: save_checkpoint() syncs their folder once for all.
constexpr Syncs kNamedLater{.name = false};

/// The name with another prefix, behind a '/' if it has one.
std::string renamed(std::string name, const std::string& from, const std::string& to) {
  const std::size_t begin = name.find('/') + 1;
  return name.compare(begin, from.size(), from) == 0 ? name.replace(begin, from.size(), to) : name;
}

NamedTensors renamed(NamedTensors all, const std::string& from, const std::string& to) {
  for (auto& [name, tensor] : all) name = renamed(std::move(name), from, to);
  return all;
}

NamedTensors buffers_of(const HeldReplica& held) {
  return renamed(held.stage->named_buffers(), held.head, held.head_after);
}

/// A kind of optimizer state, with its tensor for each parameter (undefined: none).
struct Slot {
  std::string name;
  std::vector<at::Tensor> tensors;
};

std::vector<Slot> slots_of(const HeldReplica& held) {
  const Optimizer& optimizer = held.stage->optimizer();
  const OptimizerState& state = held.stage->optimizer_state();
  std::vector<Slot> all;
  const auto add = [&](const std::string& name, const at::Tensor& flat) {
    Slot& slot = all.emplace_back(Slot{name, {}});
    for (const FlatLayout::Entry& entry : held.stage->layout().entries)
      slot.tensors.push_back(flat.defined() ? entry.view(flat) : flat);
  };
  const auto names = optimizer.slot_names(held.stage->predicts());
  for (std::size_t s = 0; s < names.size(); ++s) add(names[s], state.slots[s]);
  const auto tables = optimizer.tables(held.stage->predicts());
  for (std::size_t t = 0; t < tables.size(); ++t) all.push_back({tables[t].name, state.tables[t]});
  for (const auto& [name, flat] : held.stage->rule_slots()) add(name, flat);
  if (state.last_gradient.defined()) add("last_gradient", state.last_gradient);
  if (state.drift.defined()) add("drift", state.drift);
  return all;
}

/// Weights, and the optimizer slots that are in `known`.
NamedTensors learned_by(const HeldReplica& held, const std::vector<std::string>& known) {
  NamedTensors all = renamed(held.stage->named_parameters(), held.head, held.head_after);
  const auto& entries = held.stage->layout().entries;
  for (const Slot& slot : slots_of(held)) {
    if (std::ranges::count(known, slot.name) == 0) continue;
    for (std::size_t p = 0; p < entries.size(); ++p)
      if (slot.tensors[p].defined())
        all.emplace_back(concat("optimizer.", slot.name, ".",
                                renamed(entries[p].name, held.head, held.head_after)),
                         slot.tensors[p]);
  }
  return all;
}

std::string file_name(int stage, int replica) {
  return concat(kStage, stage, replica == 0 ? "" : concat(".replica-", replica), ".safetensors");
}

/// A kind of file that each replica writes for itself: "edges-2.replica-0.safetensors".
struct OwnFile {
  const char* prefix;
  NamedTensors (*state)(const HeldReplica&);  ///< empty: there is no file
  void (*restore)(const HeldReplica&, const NamedTensors&);
  /// A remark on what is lost if stages or replicas have changed; null: nothing is lost, because
  /// tensors are named by layer, and every stage takes those of its layers.
  const char* loss;

  std::string name(const HeldReplica& held) const {
    return concat(prefix, held.stage->index(), ".replica-", held.replica, ".safetensors");
  }
};

/// State of a member of HeldReplica that may be null.
template <auto part>
NamedTensors state_of(const HeldReplica& held) {
  return held.*part != nullptr ? (held.*part)->state() : NamedTensors();
}
template <auto part>
void restore_in(const HeldReplica& held, const NamedTensors& saved) {
  if (held.*part != nullptr) (held.*part)->restore(saved);
}

NamedTensors earlier_versions(const HeldReplica& held) {
  return held.stage->named_earlier();
}
void restore_earlier(const HeldReplica& held, const NamedTensors& saved) {
  if (held.stage->weights().earlier() > 0) held.stage->restore_earlier(saved);
}

/// Gradients are equal in all replicas, and only replica 0 evaluates, so only that one saves.
NamedTensors waiting(const HeldReplica& held) {
  if (held.replica > 0 || !held.stage->disturbances()) return {};
  return renamed(held.stage->disturbances()->state(), held.head, held.head_after);
}
void restore_waiting(const HeldReplica& held, const NamedTensors& saved) {
  if (held.stage->disturbances())
    held.stage->disturbances()->restore(renamed(saved, held.head_after, held.head));
}

constexpr const char* kCompressionLost =
    "compression begins anew and forgets earlier messages and gradients, because the stages or "
    "replicas have changed";
constexpr const char* kVersionsLost =
    "earlier versions of the weights are lost, because the stages or replicas have changed; the "
    "checkpoint's weights take their place";

constexpr std::array<OwnFile, 4> kOwnFiles{{
    {"edges-", state_of<&HeldReplica::ends>, restore_in<&HeldReplica::ends>, kCompressionLost},
    {"exchange-", state_of<&HeldReplica::exchange>, restore_in<&HeldReplica::exchange>,
     kCompressionLost},
    {"stash-", earlier_versions, restore_earlier, kVersionsLost},
    {"perturb-", waiting, restore_waiting, nullptr},
}};

CheckpointFile written(const fs::path& path, NamedTensors tensors) {
  write_safetensors(path, {.tensors = std::move(tensors)}, kNamedLater);
  return described_file(path);
}

/// The kind of a file of that name; null: it is no replica's own.
const OwnFile* own_file(const std::string& name) {
  const auto found = std::ranges::find_if(
      kOwnFiles, [&](const OwnFile& own) { return name.starts_with(own.prefix); });
  return found == kOwnFiles.end() ? nullptr : &*found;
}

/// Restores such a file in those replicas that take it. `check` as below.
void read_own(const OwnFile& own, const fs::path& path, const CheckpointFile& file,
              const std::vector<HeldReplica>& replicas, bool check) {
  const auto takes = [&](const HeldReplica& held) {
    return own.loss == nullptr || file.name == own.name(held);
  };
  if (std::ranges::none_of(replicas, takes)) return;
  if (check) check_file(path, file);
  const TensorFile content = read_safetensors(path);
  try {
    for (const HeldReplica& held : replicas)
      if (takes(held)) own.restore(held, content.tensors);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), path.string());
  }
}

static_assert(SavedLossScale::kLargest == LossScale::kLargest);

/// Restores the stages' loss scales. A replica without a file has that of replica 0, as it has its
/// weights.
void restore_loss_scales(const CheckpointManifest& manifest,
                         const std::vector<HeldReplica>& replicas) {
  for (const HeldReplica& held : replicas)
    for (const int replica : {0, held.replica}) {
      const auto file = std::ranges::find(manifest.files, file_name(held.stage->index(), replica),
                                          &CheckpointFile::name);
      if (file != manifest.files.end() && file->loss_scale && held.stage->loss_scale())
        held.stage->loss_scale() = {.scale = file->loss_scale->scale,
                                    .since = file->loss_scale->since,
                                    .skipped = file->loss_scale->skipped};
    }
}

/// The tensors to load and their stages, by the replica whose files have them and by name.
using Wanted = std::multimap<std::pair<int, std::string>, std::pair<at::Tensor, Stage*>>;

Wanted wanted_by(const std::vector<HeldReplica>& replicas, const CheckpointManifest& manifest) {
  int saved = 1;  // replicas
  for (const CheckpointFile& file : manifest.files) saved = std::max(saved, file.replica + 1);
  Wanted wanted;
  for (const HeldReplica& held : replicas) {
    held.stage->optimizer_state().steps = 0;
    for (auto& [name, tensor] : learned_by(held, manifest.slots))
      wanted.insert({{0, name}, {tensor, held.stage}});
    for (auto& [name, tensor] : buffers_of(held))
      wanted.insert({{held.replica < saved ? held.replica : 0, name}, {tensor, held.stage}});
  }
  return wanted;
}

/// Loads what is wanted of a file, and wants it no longer.
void take(Wanted& wanted, const fs::path& path, const CheckpointFile& file) {
  const TensorFile content = read_safetensors(path);
  for (const auto& [name, saved] : content.tensors) {
    const auto [begin, end] = wanted.equal_range({file.replica, name});
    for (auto each = begin; each != end; ++each) {
      auto& [tensor, stage] = each->second;
      if (saved.sizes() != tensor.sizes())
        throw data_error(path, "tensor '", name, "' has shape ", list_text(saved.sizes()),
                         "; this experiment's has ", list_text(tensor.sizes()));
      tensor.copy_(saved);
      std::int64_t& steps = stage->optimizer_state().steps;
      steps = std::max(steps, file.steps);
    }
    wanted.erase(begin, end);
  }
}

}  // namespace

std::vector<HeldReplica> held_replicas(
    const Plan& plan, const std::vector<std::unique_ptr<Stage>>& stages,
    const std::vector<std::unique_ptr<EdgeEnds>>& edges,
    const std::vector<std::unique_ptr<GradientExchange>>& exchanges) {
  const auto layers = plan.experiment->stage_layers();
  std::vector<HeldReplica> all;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i]) continue;
    const std::size_t index = i % layers.size();
    all.push_back({.replica = static_cast<int>(i / layers.size()),
                   .stage = stages[i].get(),
                   .ends = edges.empty() ? nullptr : edges[i].get(),
                   .exchange = exchanges.empty() ? nullptr : exchanges[i].get(),
                   .head = concat("heads.", index, "."),
                   .head_after = concat(kHead, layers[index].back()->name(), ".")});
  }
  return all;
}

std::vector<std::string> slot_names(std::span<const HeldReplica> replicas) {
  std::vector<std::string> names;
  for (const HeldReplica& held : replicas)
    for (const Slot& slot : slots_of(held))
      if (std::ranges::count(names, slot.name) == 0) names.push_back(slot.name);
  return names;
}

Value write_replicas(const fs::path& folder, const std::vector<HeldReplica>& replicas) {
  Value files = Value::sequence();
  for (const HeldReplica& held : replicas) {
    // Weights and optimizer state are equal in all replicas: only replica 0 saves them.
    NamedTensors tensors;
    if (held.replica == 0) tensors = learned_by(held, slot_names({&held, 1}));
    std::ranges::move(buffers_of(held), std::back_inserter(tensors));
    if (held.replica > 0 && tensors.empty()) continue;
    CheckpointFile file =
        written(folder / file_name(held.stage->index(), held.replica), std::move(tensors));
    file.replica = held.replica;
    file.steps = held.stage->optimizer_state().steps;
    if (const auto& scale = held.stage->loss_scale())
      file.loss_scale = SavedLossScale{scale->scale, scale->since, scale->skipped};
    files.items.push_back(file.value());
  }
  for (const OwnFile& own : kOwnFiles)
    for (const HeldReplica& held : replicas)
      if (NamedTensors tensors = own.state(held); !tensors.empty())
        files.items.push_back(written(folder / own.name(held), std::move(tensors)).value());
  return files;
}

std::vector<std::string> read_replicas(const fs::path& folder, const CheckpointManifest& manifest,
                                       const std::vector<HeldReplica>& replicas, bool same,
                                       bool check) {
  std::vector<std::string> remarks;
  Wanted wanted = wanted_by(replicas, manifest);
  bool scaled = false;
  for (const CheckpointFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    scaled = scaled || file.loss_scale;
    if (const OwnFile* const own = own_file(file.name)) {
      if (same || own->loss == nullptr)
        read_own(*own, path, file, replicas, check);
      else if (std::ranges::count(remarks, own->loss) == 0)
        remarks.emplace_back(own->loss);
    } else if (file.name.starts_with(kStage) && !wanted.empty()) {
      if (check) check_file(path, file);
      take(wanted, path, file);
    }
  }
  if (same)
    restore_loss_scales(manifest, replicas);
  else if (scaled)
    remarks.emplace_back("loss scales begin anew, because the stages or replicas have changed");
  const auto is_head = [](const auto& each) {
    return each.first.second.find(kHead) != each.first.second.npos;
  };
  if (std::erase_if(wanted, is_head) > 0)  // they stay initialised
    remarks.emplace_back("auxiliary heads that follow another layer now begin anew");
  std::string missing = wanted.empty() ? "" : wanted.begin()->first.second;
  for (const HeldReplica& held : replicas)
    if (missing.empty() && held.stage->disturbances())
      missing = held.stage->disturbances()->missing();
  if (!missing.empty())
    throw data_error(folder, "has no tensor '", missing, "' in any of its files");
  return remarks;
}

}  // namespace pipewright
