// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_meta.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_drops.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_recurrent.h"

namespace pipewright {
namespace {

/// Products that sum over the last dimension of an argument.
constexpr std::array<std::pair<std::string_view, const char*>, 6> kProducts{{
    {"aten::linear", "input"},
    {"aten::matmul", "self"},
    {"aten::mm", "self"},
    {"aten::bmm", "self"},
    {"aten::addmm", "mat1"},
    {"aten::baddbmm", "batch1"},
}};

/// How many products are added up for an element of the output; 0 of other operators.
double terms_of(const GraphCall& call, const GraphFrame& frame, const Pass& pass) {
  const std::string& name = call.node->name;
  for (const auto& [product, argument] : kProducts)
    if (name == product) return static_cast<double>(call.tensor(argument, frame, pass).size(-1));
  if (name == "aten::conv1d" || name == "aten::conv2d" || name == "aten::conv3d") {
    const at::Tensor weight = call.tensor("weight", frame, pass);
    return static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
  }
  if (name == kAttentionOperator)  // scores and their products with values
    return 2 * static_cast<double>(call.tensor("key", frame, pass).size(-2));
  return 0;
}

/// The scores that the backward of an attention keeps, before and after dropping.
std::vector<at::Tensor> scores_of(const GraphCall& call, const GraphFrame& frame,
                                  const Pass& pass) {
  if (call.drops.empty() || call.node->name != kAttentionOperator || !draws(call, pass)) return {};
  const at::Tensor query = call.tensor("query", frame, pass);
  std::vector<std::int64_t> sizes = query.sizes().vec();
  sizes.back() = call.tensor("key", frame, pass).size(-2);
  const at::Tensor scores = at::empty(sizes, query.options());
  return {scores, at::empty_like(scores)};
}

/// Refuses to cut a tensor into more parts than the file has memory for: each part is an object,
/// which takes memory on this device, too. The parts hold all elements between them.
void check_parts(const GraphCall& call, const c10::Stack& given, const GraphFrame& frame) {
  const auto& returns = call.handle->schema().returns();
  const bool cuts = !returns.empty() && returns[0].type()->kind() == c10::TypeKind::ListType;
  if (!cuts || given.empty() || !given[0].isTensor()) return;
  const std::int64_t elements = given[0].toTensor().numel();
  double declared = 0;
  for (const GraphOutput& output : call.node->outputs) {
    double of_output = 1;
    for (const GraphSize& size : output.shape) of_output *= static_cast<double>(frame.of(size));
    declared += of_output;
  }
  const std::int64_t most = std::max<std::int64_t>(elements, 1 << 16);
  const bool bounded = std::ranges::all_of(
      given, [&](const c10::IValue& each) { return !each.isInt() || each.toInt() <= most; });
  if (elements == 0 || !bounded || declared < static_cast<double>(elements))
    throw Error(ErrorKind::Data,
                concat("cuts a tensor of ", counted(elements, "element"), " into ",
                       counted(call.outputs.size(), "part"), ", which do not hold them"),
                call.node->where);
}

/// Refuses a tensor that takes more memory than any of a training.
void check_memory(const at::Tensor& made, const GraphCall& call) {
  constexpr std::size_t kMostElements = std::size_t{1} << 31;
  if (const std::size_t elements = made.storage().nbytes() / made.element_size();
      elements > kMostElements)
    throw Error(ErrorKind::Data,
                concat("makes a tensor of ", elements, " elements; at most ", kMostElements,
                       " are allowed"),
                call.node->where);
}

}  // namespace

void verify_on_meta(const GraphCall& call, GraphFrame& frame) {
  c10::Stack stack = call.given(frame, {});
  check_parts(call, stack, frame);
  if (call.argument("hx") != nullptr) check_recurrent(call, frame);
  if (call.kind == CallKind::View)
    stack = {stack[0].toTensor().reshape(stack[1].toIntVector())};
  else
    call.handle->callBoxed(&stack);
  call.store(stack, frame);
  for (const std::size_t place : call.outputs) check_memory(frame.tensors[place], call);
}

void run_on_meta(const GraphCall& call, GraphFrame& frame, const Pass& pass) {
  std::vector<at::Tensor> inputs = call.tensors(frame);
  std::erase_if(inputs, [](const at::Tensor& input) { return !input.is_floating_point(); });
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const GraphOutput& output = call.node->outputs[i];
    std::vector<std::int64_t> shape;
    for (const GraphSize& size : output.shape)
      shape.push_back(std::max<std::int64_t>(0, frame.of(size)));
    const bool floats = at::isFloatingType(output.type);
    const at::Tensor empty =
        at::empty(shape, at::TensorOptions(floats ? frame.type : output.type).device(at::kMeta));
    std::vector<at::Tensor> kept = inputs;
    kept.push_back(empty);
    for (const at::Tensor& scores : scores_of(call, frame, pass)) kept.push_back(scores);
    if (i == 0)
      if (const double terms = terms_of(call, frame, pass); terms > 0)
        count_multiply_adds(static_cast<double>(empty.numel()) * terms);
    frame.tensors[call.outputs[i]] =
        floats && !inputs.empty() ? made_on_meta(inputs, empty, kept) : empty;
  }
}

}  // namespace pipewright
