// SPDX-License-Identifier: Apache-2.0
/// Somebody's nn.Module: `tools/import_torch.py` exports it into a folder, and this model trains
/// it. Its layers are the module's own submodules.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/model.h"
#include "models/graph/graph_cut.h"
#include "models/graph/graph_layer.h"

namespace pipewright {
namespace {

/// Parameters that several modules use, first the one between whose uses most nodes lie.
std::vector<std::string> shared_parameters(const GraphFile& file, int depth) {
  struct Uses {
    std::size_t first = 0, last = 0;
    std::set<std::string> modules;
  };
  std::map<std::string, Uses> all;
  for (std::size_t i = 0; i < file.nodes.size(); ++i)
    for (const auto& [name, argument] : file.nodes[i].arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind != "parameter") return;
        Uses& uses = all.try_emplace(to.name, Uses{.first = i}).first->second;
        uses.last = i;
        uses.modules.insert(shortened(file.nodes[i].module, depth));
      });
  std::vector<std::string> shared;
  for (const auto& [name, uses] : all)
    if (uses.modules.size() > 1) shared.push_back(name);
  std::ranges::stable_sort(shared, std::ranges::greater{}, [&](const std::string& name) {
    return all.at(name).last - all.at(name).first;
  });
  return shared;
}

/// The runs that use each of the parameters, of those that several do.
using Users = std::map<std::string, std::vector<std::size_t>>;

Users users_of(const GraphFile& file, const std::vector<GraphRun>& runs,
               const std::set<std::string>& parameters) {
  Users users;
  for (std::size_t run = 0; run < runs.size(); ++run)
    for (std::size_t node = runs[run].first; node < runs[run].last; ++node)
      for (const auto& [name, argument] : file.nodes[node].arguments)
        for_each_reference(argument, [&](const GraphReference& to) {
          if (to.kind != "parameter" || !parameters.contains(to.name)) return;
          std::vector<std::size_t>& all = users[to.name];
          if (all.empty() || all.back() != run) all.push_back(run);
        });
  std::erase_if(users, [](const auto& each) { return each.second.size() < 2; });
  return users;
}

std::string in_layer(const std::string& parameter) {
  return "." + parameter;  // a full name (parameter_name())
}

/// What each run's layer lends and borrows; nothing if what is lent is no stack.
std::optional<std::vector<Sharing>> lending(const Users& users, std::size_t runs) {
  std::vector<Sharing> all(runs);
  std::vector<std::string> stack;
  const auto last = [&](const std::string& name) { return users.at(name).back(); };
  for (std::size_t run = 0; run < runs; ++run) {
    Sharing& shares = all[run];
    for (; !stack.empty() && last(stack.back()) == run; stack.pop_back())
      shares.takes.push_back(in_layer(stack.back()));
    for (std::size_t depth = 0; depth < stack.size(); ++depth) {
      const std::string& name = stack[stack.size() - 1 - depth];
      if (!std::ranges::binary_search(users.at(name), run)) continue;
      if (last(name) == run || shares.looks.size() != depth) return std::nullopt;
      shares.looks.push_back(in_layer(name));
    }
    const auto behind = std::ssize(stack);
    for (const auto& [name, those] : users)
      if (those.front() == run) stack.push_back(name);
    std::stable_sort(stack.begin() + behind, stack.end(),
                     [&](const std::string& a, const std::string& b) { return last(a) > last(b); });
    for (auto lent = stack.begin() + behind; lent != stack.end(); ++lent)
      shares.lends.push_back(in_layer(*lent));
  }
  return all;
}

std::vector<Sharing> copying(const Users& users, std::size_t runs, bool gradients) {
  std::vector<Sharing> all(runs);
  for (const auto& [name, those] : users)
    for (std::size_t i = 1; i < those.size(); ++i)
      all[those[i]].copies.push_back({.parameter = in_layer(name),
                                      .name = concat(in_layer(name), "#", i + 1),
                                      .of = name,
                                      .gradients = gradients});
  return all;
}

struct TiedRuns {
  std::vector<GraphRun> runs;
  std::vector<Sharing> shares;    ///< of each run's layer
  std::vector<std::string> kept;  ///< parameters between whose uses there is no cut
};

/// Divides the graph so that cuts part the uses of parameters as `tie` says. Copies are called
/// "<name>#2", "<name>#3" and so on. Tie::Same parts the uses of those that nest like brackets,
/// because what is lent is a stack; of others, of those between whose uses most nodes lie.
TiedRuns tied_runs(const GraphFile& file, int depth, Tie tie) {
  TiedRuns made{.kept = shared_parameters(file, depth)};
  std::set<std::string> parted;
  const auto users = [&] {
    made.runs = graph_runs(file, depth, parted);
    return users_of(file, made.runs, parted);
  };
  if (tie == Tie::Same)
    std::erase_if(made.kept, [&](const std::string& each) {
      parted.insert(each);
      const Users tried = users();
      if (lending(tried, made.runs.size())) return true;
      parted.erase(each);
      return false;
    });
  else if (tie != Tie::None)
    parted = {std::move_iterator(made.kept.begin()), std::move_iterator(made.kept.end())};
  if (tie == Tie::Start || tie == Tie::Late) made.kept.clear();
  const Users all = users();
  made.shares = tie == Tie::Same ? lending(all, made.runs.size()).value()
                                 : copying(all, made.runs.size(), tie == Tie::Late);
  return made;
}

/// Why there are not more layers: parameters whose uses keep nodes together, or the depth.
std::string why_so_few(const GraphFile& file, int depth, Tie tie) {
  const std::vector<std::string> kept = tied_runs(file, depth, tie).kept;
  if (kept.empty()) return concat("; a greater model.depth than ", depth, " makes more of them");
  if (tie == Tie::Same)
    return concat(
        "; what model.tie: same lends must nest like brackets, so no cut lies between "
        "the uses of '",
        join(kept, "', '"),
        "' (with model.tie: late, or untied by import_torch.py --untie, it may)");
  std::vector<std::string> modules;
  for (const GraphNode& node : file.nodes)
    for (const auto& [name, argument] : node.arguments)
      for_each_reference(argument, [&](const GraphReference& to) {
        if (to.kind == "parameter" && to.name == kept[0]) modules.push_back(node.module);
      });
  return concat("; '", kept[0], "' is used by the modules '", modules.front(), "' and '",
                modules.back(),
                "', and no cut lies between them (model.tie says how one may; import_torch.py "
                "--untie makes a parameter for each)");
}

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
            "gradient at once and the others' when the schedule has brought them.")) {}

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
  bool initialises() const override { return false; }
  bool takes_shorter_samples() const override { return false; }
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
