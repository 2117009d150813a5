// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_drops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error_at.h"
#include "core/nn/layers.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_recurrent.h"

namespace pipewright {
namespace {

double probability(const GraphCall& call, const char* name) {
  const MatchedArgument& given = *call.argument(name);
  const bool number =
      given.source == MatchedArgument::Source::Constant && given.constant.isDouble();
  const double p = number ? given.constant.toDouble() : -1;
  if (!(p >= 0 && p <= 1))
    throw data_error(call.node->where, "the probability of dropping is ", p, "; expected 0 to 1");
  return p;
}

/// The dimensions of a shape that grow with the batch.
std::vector<std::size_t> batch_dimensions(const std::vector<GraphSize>& shape) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i][0] != 0) found.push_back(i);
  return found;
}

/// Refuses shapes whose elements belong to no sample, which streams could not tell apart.
void check_shape(const GraphCall& call, const GraphOutput& output) {
  const auto found = batch_dimensions(output.shape);
  if (found.size() > 1 ||
      (found.size() == 1 && (output.shape[found[0]][0] < 0 || output.shape[found[0]][1] != 0)))
    throw data_error(call.node->where, "drops elements of '", output.name,
                     "', of which no dimension is a multiple of the batch alone");
}

/// Drops elements of x, whose shape is `shape`. Where a mini-batch is cut, sample s of it gets the
/// same mask as uncut; what has no batch gets one mask for the mini-batch.
at::Tensor dropped(const Layer& drops, const at::Tensor& x, const std::vector<GraphSize>& shape,
                   const Pass& pass) {
  const auto found = batch_dimensions(shape);
  Pass here = pass;
  if (found.empty()) {
    here.first_sample = 0;
    return drops.forward(x, {}, {}, here);
  }
  const auto dimension = static_cast<std::int64_t>(found[0]);
  const std::int64_t each = shape[found[0]][0];  // rows of a sample
  at::Tensor samples = dimension == 0 ? x : x.movedim(dimension, 0);
  if (each > 1) samples = samples.unflatten(0, {samples.size(0) / each, each});
  at::Tensor made = drops.forward(samples, {}, {}, here);
  if (each > 1) made = made.flatten(0, 1);
  return dimension == 0 ? made : made.movedim(0, dimension);
}

/// Zeros and 1 / (1 − p), in float32 or wider, since bfloat16 would round the latter to 8 bits.
at::Tensor mask(const Layer& drops, at::IntArrayRef sizes, const at::Tensor& like,
                const std::vector<GraphSize>& shape, const Pass& pass) {
  const at::ScalarType type = like.element_size() < 4 ? at::kFloat : like.scalar_type();
  const at::NoGradGuard no_grad;
  return dropped(drops, at::ones(sizes, like.options().dtype(type)), shape, pass);
}

/// Dropout of channels, which are all elements of a sample with one place in dimension 1.
at::Tensor channels_dropped(const GraphCall& call, const at::Tensor& x, const Pass& pass) {
  std::vector<GraphSize> shape = call.node->outputs[0].shape;
  std::vector<std::int64_t> sizes = x.sizes().vec();
  std::fill(shape.begin() + 2, shape.end(), GraphSize{0, 1});
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  return (x * mask(*call.drops[0], sizes, x, shape, pass)).to(x.scalar_type());
}

/// −∞ where the mask forbids a key, or what a mask of numbers adds.
at::Tensor masked(const at::Tensor& scores, const at::Tensor& mask, bool causal) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (causal) {
    const at::Tensor later =
        at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).triu(1);
    return scores.masked_fill(later, kNever);
  }
  if (!mask.defined()) return scores;
  if (mask.scalar_type() == at::kBool) return scores.masked_fill(mask.logical_not(), kNever);
  return scores + mask;
}

/// The steps of scaled_dot_product_attention, whose own dropout draws from a global generator.
at::Tensor attention(const GraphCall& call, const GraphFrame& frame, const Pass& pass) {
  const at::Tensor q = call.tensor("query", frame, pass), v = call.tensor("value", frame, pass);
  at::Tensor k = call.tensor("key", frame, pass), values = v;
  if (const std::int64_t groups = q.size(-3) / std::max<std::int64_t>(1, k.size(-3));
      q.dim() > 2 && call.value("enable_gqa", frame, pass).toBool() && groups > 1) {
    k = k.repeat_interleave(groups, -3);
    values = v.repeat_interleave(groups, -3);
  }
  const c10::IValue scale = call.value("scale", frame, pass);
  const double factor =
      scale.isNone() ? 1 / std::sqrt(static_cast<double>(q.size(-1))) : scale.toDouble();
  const at::Tensor scores =
      masked(at::matmul(q * factor, k.transpose(-2, -1)), call.tensor("attn_mask", frame, pass),
             call.value("is_causal", frame, pass).toBool());
  const at::ScalarType wide = scores.element_size() < 4 ? at::kFloat : scores.scalar_type();
  const at::Tensor shares = at::_safe_softmax(scores, -1, wide);
  std::vector<GraphSize> shape = call.node->outputs[0].shape;
  shape.back() = {0, shares.size(-1)};
  return at::matmul(dropped(*call.drops[0], shares, shape, pass).to(v.scalar_type()), values);
}

/// Dropouts between the layers of a recurrent operator.
std::vector<LayerPtr> between_layers(GraphCall& call) {
  const double p = probability(call, "dropout");
  if (p == 0) return {};
  if (call.outputs.size() != call.handle->schema().returns().size())
    throw data_error(call.node->where, "has other than ", call.handle->schema().returns().size(),
                     " outputs");
  std::vector<LayerPtr> all;
  for (std::int64_t layer = 1; layer < recurrent_layers(call); ++layer) all.push_back(dropout(p));
  if (!all.empty()) check_shape(call, call.node->outputs[0]);
  *call.argument("dropout") = {.constant = 0.0};
  return all;
}

}  // namespace

std::vector<LayerPtr> drops_of(GraphCall& call) {
  const std::string& name = call.node->name;
  const bool attends = name == kAttentionOperator;
  if (is_dropout(name) || attends) {
    const double p = probability(call, attends ? "dropout_p" : "p");
    if (attends && p == 0) return {};
    if (call.outputs.size() != 1) throw data_error(call.node->where, "has other than one output");
    const GraphOutput& output = call.node->outputs[0];
    check_shape(call, output);
    if (attends && (output.shape.size() < 3 || output.shape.back()[0] != 0))
      throw data_error(call.node->where,
                       "has no dimension of samples before those of positions and features");
    if (name == "aten::feature_dropout" && output.shape.size() < 2)
      throw data_error(call.node->where, "has no dimension of channels");
    if (attends) *call.argument("dropout_p") = {.constant = 0.0};
    return {dropout(p)};
  }
  return call.argument("dropout") == nullptr ? std::vector<LayerPtr>() : between_layers(call);
}

void name_drops(const GraphCall& call, const std::string& layer) {
  for (std::size_t i = 0; i < call.drops.size(); ++i)
    call.drops[i]->set_name(concat(layer, ".", call.node->outputs.at(0).name,
                                   i == 0 ? std::string() : concat(".", i + 1)));
}

bool draws(const GraphCall& call, const Pass& pass) {
  const MatchedArgument *train = call.argument("train"), *p = call.argument("p");
  return pass.training && (train == nullptr || train->constant.toBool()) &&
         (p == nullptr || p->constant.toDouble() > 0);
}

void run_dropping(const GraphCall& call, GraphFrame& frame, const Pass& pass) {
  const std::string& name = call.node->name;
  at::Tensor& output = frame.tensors[call.outputs[0]];
  if (name == kAttentionOperator) {
    output = attention(call, frame, pass);
    return;
  }
  if (!is_dropout(name)) {
    const std::vector<GraphSize>& shape = call.node->outputs[0].shape;
    run_by_layers(call, frame, pass, [&](std::size_t layer, const at::Tensor& x) {
      return dropped(*call.drops.at(layer), x, shape, pass);
    });
    return;
  }
  const at::Tensor input = call.value(call.arguments[0], frame, pass).toTensor();
  if (!draws(call, pass))
    output = input;
  else if (name == "aten::feature_dropout")
    output = channels_dropped(call, input, pass);
  else if (name.ends_with('_'))
    output =
        input.mul_(mask(*call.drops[0], input.sizes(), input, call.node->outputs[0].shape, pass));
  else
    output = dropped(*call.drops[0], input, call.node->outputs[0].shape, pass);
}

}  // namespace pipewright
