// SPDX-License-Identifier: Apache-2.0
#include "core/stage/split_backward.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::Node;
using torch::autograd::impl::gradient_edge;

bool leads_somewhere(const Edge& edge) {
  return edge.is_valid();
}

/// The operations of a graph that lead to one parameter and nothing else: the node where autograd
/// delivers the parameter's gradient, and operations such as reshapes, transposes and look-ups on
/// the way there.
class ParameterSide {
 public:
  explicit ParameterSide(std::span<const at::Tensor> parameters) {
    for (const at::Tensor& parameter : parameters)
      known_[gradient_edge(parameter).function.get()] = true;
  }

  bool has(Node* operation) {
    std::vector<Node*> way;
    Node* at = operation;
    for (; at != nullptr && !known_.contains(at); at = only_next(*at)) way.push_back(at);
    const bool leads_there = at != nullptr && known_[at];
    for (Node* const passed : way) known_[passed] = leads_there;
    return leads_there;
  }

 private:
  static Node* only_next(const Node& operation) {
    const edge_list& edges = operation.next_edges();
    if (std::ranges::count_if(edges, leads_somewhere) != 1) return nullptr;
    return std::ranges::find_if(edges, leads_somewhere)->function.get();
  }

  std::unordered_map<Node*, bool> known_;
};

/// Whether the operation's kernel computes the gradients of activations and parameters together, or
/// does most of that work at once. Such an operation runs once, in the first half, and the second
/// half takes the parameters' gradients from there.
bool makes_all_at_once(const Node& operation) {
  constexpr std::array<std::string_view, 3> kNames = {
      "MkldnnRnnLayerBackward0", "NativeBatchNormBackward0", "CudnnBatchNormBackward0"};
  return std::ranges::count(kNames, operation.name()) > 0;
}

/// The operations reachable from the outputs that have an edge into a parameter's side.
std::vector<std::shared_ptr<Node>> reading_parameters(const edge_list& from, ParameterSide& side) {
  std::vector<std::shared_ptr<Node>> found, open;
  std::unordered_set<Node*> seen;
  auto visit = [&](const Edge& edge) {
    if (edge.is_valid() && seen.insert(edge.function.get()).second) open.push_back(edge.function);
  };
  for (const Edge& edge : from) visit(edge);
  while (!open.empty()) {
    const std::shared_ptr<Node> operation = std::move(open.back());
    open.pop_back();
    bool reads = side.has(operation.get());  // an output that depends on one parameter alone
    for (const Edge& edge : operation->next_edges()) {
      if (!edge.is_valid() || side.has(operation.get())) continue;
      if (side.has(edge.function.get()))
        reads = true;
      else
        visit(edge);
    }
    if (reads) found.push_back(operation);
  }
  return found;
}

/// The roots of the second half: every output of the operations that read parameters or, for
/// operations that compute both gradients at once, the nodes on the parameters' side that receive
/// their gradients.
std::vector<WeightHalf::Root> weight_roots(const edge_list& from, ParameterSide& side) {
  std::vector<WeightHalf::Root> roots;
  std::vector<std::shared_ptr<Node>> whole;
  std::unordered_set<Node*> shared;  // nodes that also receive gradients in the second half
  for (const std::shared_ptr<Node>& operation : reading_parameters(from, side)) {
    if (makes_all_at_once(*operation)) {
      whole.push_back(operation);
      continue;
    }
    for (const Edge& edge : operation->next_edges()) shared.insert(edge.function.get());
    for (std::uint32_t output = 0; output < operation->num_inputs(); ++output)
      roots.push_back({operation, output, {}});
  }
  std::set<std::pair<Node*, std::uint32_t>> taken;
  for (const std::shared_ptr<Node>& operation : whole) {
    const auto is_parameters = [&](const Edge& edge) {
      return edge.is_valid() && side.has(edge.function.get());
    };
    const bool alone = std::ranges::none_of(operation->next_edges(), [&](const Edge& edge) {
      return is_parameters(edge) && shared.contains(edge.function.get());
    });
    for (std::uint32_t output = 0; !alone && output < operation->num_inputs(); ++output)
      roots.push_back({operation, output, {}});
    for (const Edge& edge : operation->next_edges())
      if (alone && is_parameters(edge) && taken.emplace(edge.function.get(), edge.input_nr).second)
        roots.push_back({edge.function, edge.input_nr, {}});
  }
  return roots;
}

/// While it lives, the root operations keep only their edges to the parameters' side, so a backward
/// does not continue to the operations below them.
class Cut {
 public:
  Cut(const std::vector<WeightHalf::Root>& roots, ParameterSide& side) {
    for (const WeightHalf::Root& root : roots) {
      if (side.has(root.operation.get())) continue;
      for (Edge& edge : root.operation->next_edges())
        if (edge.is_valid() && !side.has(edge.function.get()))
          edges_.emplace_back(&edge, std::exchange(edge, Edge()));
    }
  }
  ~Cut() {
    for (auto& [place, edge] : edges_) *place = std::move(edge);
  }
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  /// Makes the cut permanent.
  void keep() { edges_.clear(); }

 private:
  std::vector<std::pair<Edge*, Edge>> edges_;
};

edge_list edges_of(std::span<const at::Tensor> tensors) {
  edge_list edges;
  for (const at::Tensor& tensor : tensors) edges.push_back(gradient_edge(tensor));
  return edges;
}

}  // namespace

InputHalf backward_of_inputs(const std::vector<at::Tensor>& outputs,
                             const std::vector<at::Tensor>& gradients,
                             const std::vector<at::Tensor>& inputs,
                             std::span<const at::Tensor> parameters) {
  const edge_list from = edges_of(outputs);
  ParameterSide side(parameters);
  std::vector<WeightHalf::Root> roots = weight_roots(from, side);
  edge_list wanted = edges_of(inputs);
  for (const WeightHalf::Root& root : roots) wanted.emplace_back(root.operation, root.output);
  std::vector<at::Tensor> of_inputs(inputs.size());
  if (!from.empty() && !wanted.empty()) {
    of_inputs = Engine::get_default_engine().execute(from, gradients, true, false, false, wanted);
    for (std::size_t i = 0; i < roots.size(); ++i)
      roots[i].gradient = std::move(of_inputs[inputs.size() + i]);
    of_inputs.resize(inputs.size());
  }
  std::erase_if(roots, [](const auto& root) { return !root.gradient.defined(); });
  return {std::move(of_inputs), WeightHalf(std::move(roots))};
}

void WeightHalf::run(std::span<const at::Tensor> parameters, bool keep_graph) {
  if (roots_.empty()) return;
  ParameterSide side(parameters);
  const Cut cut(roots_, side);
  edge_list from;
  std::vector<at::Tensor> gradients;
  for (Root& root : roots_) {
    from.emplace_back(root.operation, root.output);
    gradients.push_back(std::move(root.gradient));
  }
  Engine::get_default_engine().execute(from, gradients, keep_graph, false, false,
                                       edges_of(parameters));
  roots_.clear();
}

void WeightHalf::release_inputs(std::span<const at::Tensor> parameters) {
  ParameterSide side(parameters);
  Cut(roots_, side).keep();
}

}  // namespace pipewright
