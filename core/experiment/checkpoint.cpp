#include "core/experiment/checkpoint.h"

#include <charconv>

#include "core/base/error.h"
#include "core/stage/safetensors.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

/// Every tensor of the state with its name in the file; the same walk saves and loads. Replicas
/// share weights and optimizer state, so replica 0's stand for all; buffers are each one's own.
template <class Visit>
void visit_state(const Optimizer& optimizer, bool predicts,
                 const std::vector<std::unique_ptr<Stage>>& stages, int stages_per_replica,
                 const Visit& visit) {
  const auto slots = optimizer.slot_names(predicts);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = *stages[i];
    const std::size_t replica = i / static_cast<std::size_t>(stages_per_replica);
    for (auto& [name, tensor] : stage.named_parameters()) visit(replica, name, tensor);
    const std::string own = replica == 0 ? "" : concat("replica.", replica, ".");
    for (auto& [name, tensor] : stage.named_buffers()) visit(0, own + name, tensor);
    OptimizerState& state = stage.optimizer_state();
    for (const FlatLayout::Entry& entry : stage.layout().entries) {
      auto part = [&](const at::Tensor& flat) {
        return flat.narrow(0, entry.offset, entry.size).view(entry.shape);
      };
      for (std::size_t s = 0; s < slots.size(); ++s)
        visit(replica, concat("optimizer.", slots[s], ".", entry.name), part(state.slots[s]));
      if (state.last_gradient.defined())
        visit(replica, concat("optimizer.last_gradient.", entry.name), part(state.last_gradient));
    }
  }
}

std::int64_t number_in(const TensorFile& file, const std::string& key,
                       const std::filesystem::path& path) {
  const auto found = file.metadata.find(key);
  std::int64_t value = -1;  // stays so where nothing can be read
  if (found != file.metadata.end()) {
    const char* const end = found->second.data() + found->second.size();
    if (std::from_chars(found->second.data(), end, value).ptr == end && value >= 0) return value;
  }
  throw Error(ErrorKind::Data, concat("is no checkpoint: its metadata has no number '", key, "'"),
              path.string());
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Optimizer& optimizer, bool predicts,
                     const std::vector<std::unique_ptr<Stage>>& stages, int stages_per_replica,
                     int epochs, const std::string& digest) {
  TensorFile file;
  visit_state(optimizer, predicts, stages, stages_per_replica,
              [&](std::size_t replica, const std::string& name, const at::Tensor& tensor) {
                if (replica == 0) file.tensors.emplace_back(name, tensor);
              });
  file.metadata = {{"epochs", std::to_string(epochs)}, {"digest", digest}};
  for (int stage = 0; stage < stages_per_replica; ++stage)
    file.metadata[concat("steps.", stage)] =
        std::to_string(stages[static_cast<std::size_t>(stage)]->optimizer_state().steps);
  write_safetensors(path, file);
}

int load_checkpoint(const std::filesystem::path& path, const Optimizer& optimizer, bool predicts,
                    const std::vector<std::unique_ptr<Stage>>& stages, int stages_per_replica,
                    const std::string& digest) {
  const TensorFile file = read_safetensors(path);
  const auto of = file.metadata.find("digest");
  if (of == file.metadata.end() || of->second != digest)
    throw Error(ErrorKind::Experiment,
                "was written by another experiment; run with --overwrite to begin anew",
                path.string());
  visit_state(optimizer, predicts, stages, stages_per_replica,
              [&](std::size_t, const std::string& name, at::Tensor tensor) {
                const at::Tensor* saved = file.find(name);
                if (saved == nullptr || saved->sizes() != tensor.sizes())
                  throw Error(ErrorKind::Data,
                              concat("has no tensor '", name, "' of the right shape"),
                              path.string());
                tensor.copy_(*saved);
              });
  for (std::size_t i = 0; i < stages.size(); ++i)
    stages[i]->optimizer_state().steps =
        number_in(file, concat("steps.", i % static_cast<std::size_t>(stages_per_replica)), path);
  return static_cast<int>(number_in(file, "epochs", path));
}

}  // namespace pipewright
