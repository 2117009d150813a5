// SPDX-License-Identifier: Apache-2.0
#include "core/measuring/codec_costs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/measuring/boundaries.h"
#include "core/measuring/made_up_batch.h"
#include "core/measuring/profiling.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Bytes of the encoded message in one direction. Integers cross forward only.
std::int64_t sent(const NamedCodec& named, const EdgeMessage& message, bool backward) {
  std::int64_t bytes = backward ? 0 : message.exact;
  for (const FrameHeader& header : message.headers) {
    const auto payload = named.codec ? named.codec->payload_bytes(header.sizes) : std::nullopt;
    bytes += payload ? *payload + header.bytes() : header.payload;
  }
  return bytes;
}

class Speeds {
 public:
  explicit Speeds(const Hardware& hardware) : hardware_(hardware) {}

  /// Seconds to encode and to decode so many bytes.
  std::pair<double, double> seconds(const NamedCodec& named, double bytes) {
    return named.codec ? seconds(named.name, bytes) : std::pair(0.0, 0.0);
  }
  std::pair<double, double> seconds(const std::string& name, double bytes) {
    const auto known = std::ranges::find(hardware_.codecs, name, &CodecSpeed::codec);
    if (known != hardware_.codecs.end()) return {bytes / known->encode, bytes / known->decode};
    unknown_.insert(name);
    return {0, 0};
  }
  std::vector<std::string> unknown() const { return {unknown_.begin(), unknown_.end()}; }

 private:
  const Hardware& hardware_;
  std::set<std::string> unknown_;
};

/// How many times as large as the model's message one of the costs' size is; 1 where the costs do
/// not say or are the model's.
double scale_of(std::int64_t bytes_of_costs, double bytes_of_model, MessageSizes sizes) {
  if (sizes == MessageSizes::OfModel || bytes_of_costs == 0 || bytes_of_model == 0) return 1;
  return static_cast<double>(bytes_of_costs) / bytes_of_model;
}

std::int64_t scaled(double scale, std::int64_t bytes) {
  return std::llround(scale * static_cast<double>(bytes));
}

void compress_edges(std::vector<StageCost>& costs, const Experiment& experiment, MessageSizes sizes,
                    const std::vector<EdgeMessage>& crossing, Speeds& speeds) {
  const Compression& compression = experiment.pipeline.compression;
  for (std::size_t edge = 0; edge < crossing.size(); ++edge) {
    StageCost &before = costs[edge], &behind = costs[edge + 1];
    const double values = crossing[edge].values;
    const double there =
        scale_of(before.output_bytes, values + static_cast<double>(crossing[edge].exact), sizes);
    const double back = scale_of(behind.input_bytes, values, sizes);
    if (compression.empty()) {
      if (crossing[edge].exact > 0) behind.sent_gradient_bytes = std::llround(back * values);
      continue;
    }
    const auto& [forward, backward, in_evaluation] = compression[edge];
    before.sent_bytes = scaled(there, sent(forward, crossing[edge], false));
    behind.sent_gradient_bytes = scaled(back, sent(backward, crossing[edge], true));
    const auto [encode, decode] = speeds.seconds(forward, there * values);
    before.coding_forward += encode;
    behind.coding_forward += decode;
    const auto [encode_back, decode_back] = speeds.seconds(backward, back * values);
    behind.coding_backward += encode_back;
    before.coding_backward += decode_back;
  }
}

void compress_gradients(std::vector<StageCost>& costs, const Experiment& experiment,
                        MessageSizes sizes, Speeds& speeds) {
  const std::vector<int> heads = experiment.scheme->auxiliary_sites(experiment.pipeline.stages);
  const auto layers = experiment.stage_layers();
  for (std::size_t stage = 0; stage < costs.size(); ++stage) {
    const int index = static_cast<int>(stage);
    const bool has_head = std::ranges::binary_search(heads, index);
    const NamedShapes parameters =
        parameter_shapes(layers[stage], has_head ? experiment.head_behind(index) : nullptr);
    const auto each =
        static_cast<std::int64_t>(at::elementSize(experiment.train.precision.weights));
    ExchangedBytes bytes =
        exchanged_bytes(parameters, experiment.pipeline.gradient_compression, each);
    if (bytes.compressed == 0) continue;
    const double own = elements_of(parameters) * static_cast<double>(each);
    const double scale = sizes == MessageSizes::OfModel
                             ? 1
                             : static_cast<double>(costs[stage].parameter_bytes) / own;
    for (std::int64_t& sum : bytes.sums) sum = scaled(scale, sum);
    costs[stage].reduced_bytes = bytes.sums;
    const auto [encode, decode] =
        speeds.seconds("powersgd", scale * static_cast<double>(bytes.compressed));
    costs[stage].coding_reduce += encode + decode;
  }
}

}  // namespace

std::vector<EdgeMessage> edge_messages(const Experiment& e) {
  const auto meta = at::TensorOptions(e.train.precision.values).device(at::kMeta);
  const std::int64_t samples = described(e, at::kMeta).samples;  // as all other costs
  Tensors inputs = made_up_batch(*e.model, samples, meta).x;
  std::vector<EdgeMessage> edges;
  // Without a codec only integers count, and models get them from their inputs.
  if (e.pipeline.compression.empty() && std::ranges::all_of(inputs, &at::Tensor::is_floating_point))
    return edges;
  for (const Tensors& tensors : boundaries(e, std::move(inputs))) {
    EdgeMessage& message = edges.emplace_back();
    for (const at::Tensor& tensor : tensors) {
      const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
      if (!tensor.is_floating_point()) {
        message.exact += bytes;
        continue;
      }
      message.values += static_cast<double>(bytes);
      message.headers.push_back({.sizes = tensor.sizes().vec(), .payload = bytes});
    }
    // No codec encodes slices, so only what crosses without one is divided among them.
    message.values /= e.pipeline.slices;
  }
  return edges;
}

std::vector<std::string> account_for_codecs(std::vector<StageCost>& costs,
                                            const Experiment& experiment,
                                            const std::vector<EdgeMessage>& messages,
                                            const Hardware& hardware, MessageSizes sizes) {
  const PipelineOptions& pipeline = experiment.pipeline;
  if (experiment.layout.balance.empty()) return {};
  Speeds speeds(hardware);
  compress_edges(costs, experiment, sizes, messages, speeds);
  if (pipeline.replicas > 1 && pipeline.gradient_compression.rank > 0)
    compress_gradients(costs, experiment, sizes, speeds);
  return speeds.unknown();
}

}  // namespace pipewright
