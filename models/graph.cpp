// SPDX-License-Identifier: Apache-2.0
/// Somebody's nn.Module: `tools/import_torch.py` exports it into a folder, and this model trains
/// it. Its layers are the module's own submodules.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "models/graph/graph_layer.h"
#include "models/graph/graph_ties.h"

namespace pipewright {
namespace {

class Graph final : public Model {
 public:
  explicit Graph(Options& options)
      : folder_(options.required_path(
            "file",
            "Folder that tools/import_torch.py has written. Its weights.safetensors, given "
            "as `weights`, is what the training starts from.")),
        depth_(static_cast<int>(options.integer(
            "depth", 2,
            "How many parts of a module's path name a layer: with 1 \"layer1\" is a layer, with 2 "
            "\"layer1.0\" is one.",
            {1, 100}))),
        tie_(read_tie(
            options,
            "Whether a cut may part layers that read one parameter, such as an embedding and an "
            "output. none: it may not. start: it may, and each has a copy, which is equal when "
            "the training starts and then has its own updates. same: it may; the parameter "
            "belongs to the first, whose stage sends the weights that its forward has read to "
            "the others', which send their gradients back; of several parameters those whose "
            "uses nest like brackets. late: it may, and each has a copy, which applies its own "
            "gradient at once and the others' when the schedule has brought them.")) {
    if (!options.given("weights"))
      options.problem("weights",
                      "is missing; expected the file weights.safetensors of the folder, from which "
                      "the training starts");
  }

  std::vector<LayerPtr> layers() const override {
    const TiedRuns tied = tied_runs(*file(), depth_, tie_);
    std::vector<LayerPtr> all;
    for (std::size_t i = 0; i < tied.runs.size(); ++i)
      all.push_back(sharing(graph_layer(file(), tied.runs[i]), tied.shares[i]));
    return all;
  }

  std::vector<std::int64_t> input_shape() const override {
    return file()->inputs[0].sample_shape();
  }
  std::int64_t vocabulary() const override { return file()->inputs[0].vocabulary; }
  std::vector<NamedInput> named_inputs() const override {
    std::vector<NamedInput> all;
    if (file()->inputs.size() < 2) return all;
    for (const GraphInput& each : file()->inputs)
      all.push_back({.name = each.name,
                     .shape = each.sample_shape(),
                     .type = each.type,
                     .vocabulary = each.vocabulary});
    return all;
  }
  Task task() const override {
    const bool each = vocabulary() > 0 && file()->output_shape.size() > 1;  // of the tokens
    return each ? Task::Continue : Task::Classify;
  }
  std::int64_t classes() const override { return file()->output_shape.back(); }
  LayerPtr head(std::size_t) const override { return nullptr; }
  std::string why_so_few_layers() const override { return why_so_few(*file(), depth_, tie_); }

 private:
  /// The file, read when it is first asked for: constructors read options only.
  const std::shared_ptr<const GraphFile>& file() const {
    std::call_once(read_, [this] { file_ = std::make_shared<GraphFile>(read_graph(folder_)); });
    return file_;
  }

  std::filesystem::path folder_;
  int depth_;
  Tie tie_;
  mutable std::once_flag read_;
  mutable std::shared_ptr<const GraphFile> file_;
};

PIPEWRIGHT_MODEL(graph, Graph, "Your own PyTorch module, exported by tools/import_torch.py.");

}  // namespace
}  // namespace pipewright
