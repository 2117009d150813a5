// SPDX-License-Identifier: Apache-2.0
// Imported modules: graph.json, cut at any depth, and run on the meta device and, where that is
// small, on the processor. The layers of a graph that is taken hold each of its nodes once, in
// order, what leaves one enters the next, and a forward has the shape that the file says or is
// refused.
#include <algorithm>

#include "core/config/json.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_cut.h"
#include "models/graph/graph_layer.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::int64_t kBatch = 3;

std::vector<at::Tensor> ones(const auto& specs, at::Device device) {
  std::vector<at::Tensor> tensors;
  for (const auto& spec : specs)
    tensors.push_back(at::ones(spec.shape, at::TensorOptions(at::kFloat).device(device)));
  return tensors;
}

/// Whether the processor has the memory and the time to compute what the file declares.
bool is_small(const GraphFile& file) {
  double elements = 0;
  const auto add = [&](const auto& sizes, auto&& of) {
    double product = 1;
    for (const auto& size : sizes) product *= std::max<double>(1, static_cast<double>(of(size)));
    elements += product;
  };
  const auto number = [](std::int64_t size) { return size; };
  const auto declared = [](const GraphSize& size) { return size[0] * kBatch + size[1]; };
  for (const GraphInput& input : file.inputs) add(input.shape, declared);
  for (const auto& [name, shape] : file.parameters) add(shape, number);
  for (const auto& [name, shape] : file.buffers) add(shape, number);
  for (const GraphNode& node : file.nodes)
    for (const GraphOutput& output : node.outputs) add(output.shape, declared);
  return elements < (1 << 16);
}

void check_cut(const GraphFile& file, const std::vector<GraphRun>& runs) {
  require(!runs.empty() && runs.front().first == 0 && runs.back().last == file.nodes.size(),
          "the layers leave out a node at an end");
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    require(runs[i].last == runs[i + 1].first, "a node is in two layers or in none");
    require(runs[i].leaves == runs[i + 1].enters, "what leaves a layer does not enter the next");
  }
}

std::string computed(const GraphFile& file, const std::vector<LayerPtr>& layers,
                     at::Device device) {
  Tensors values;
  for (const GraphInput& input : file.inputs) {
    std::vector<std::int64_t> sizes = input.sample_shape();
    sizes.insert(sizes.begin(), kBatch);
    const at::ScalarType type = at::isFloatingType(input.type) ? at::kFloat : input.type;
    values.push_back(at::ones(sizes, at::TensorOptions(type).device(device)));
  }
  std::string text;
  for (const LayerPtr& layer : layers) {
    auto buffers = ones(layer->buffers(), device);
    values = layer->forward_all(values, ones(layer->parameters(), device), buffers, {});
    text += concat(layer->name(), " ", values.size(), "\n");
  }
  return text;
}

std::string run(const std::shared_ptr<const GraphFile>& file, int depth) {
  const std::vector<GraphRun> runs = graph_runs(*file, depth);
  check_cut(*file, runs);
  std::vector<LayerPtr> layers;
  for (const GraphRun& each : runs) layers.push_back(graph_layer(file, each));
  const std::string text = computed(*file, layers, at::kMeta);
  if (is_small(*file)) computed(*file, layers, at::kCPU);
  return text;
}

std::string read(std::string_view bytes) {
  const auto constant = [](const std::string&) { return at::ones({4}); };
  const auto file = std::make_shared<const GraphFile>(
      graph_of(parse_json(bytes, "fuzz.json"), "fuzz.json", constant));
  return run(file, 1) + run(file, 3);
}

std::size_t most_memory(std::string_view bytes) {
  return (4 << 20) + 16384 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read,
                     .refusals = {ErrorKind::Data, ErrorKind::Experiment},
                     .most_memory = most_memory,
                     .rounds = 5'000};

}  // namespace pipewright::fuzz
