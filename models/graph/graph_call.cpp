// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_call.h"

#include <algorithm>
#include <utility>

#include "core/base/error_at.h"
#include "core/base/text.h"
#include "core/base/wording.h"
#include "core/nn/layers/gpu_forms.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_operators.h"

namespace pipewright {
namespace {

using Source = MatchedArgument::Source;

/// Refuses a tensor that is not what the file says: plans and memory are counted from the file.
void check_shape(const GraphOutput& output, const at::Tensor& made, const GraphFrame& frame,
                 const std::string& where) {
  const auto same = [&](std::int64_t size, const GraphSize& declared) {
    return size == frame.of(declared);
  };
  if (std::ranges::equal(made.sizes(), output.shape, same)) return;
  std::vector<std::int64_t> wanted;
  for (const GraphSize& size : output.shape) wanted.push_back(frame.of(size));
  throw data_error(where, "'", output.name, "' has the shape ", shape_text(made.sizes().vec()),
                   "; the file says ", shape_text(wanted), " for a batch of ", frame.batch);
}

/// Floating-point numbers of one width may stand for those of another, in mixed precision.
void check_type(const GraphOutput& output, const at::Tensor& made, const std::string& where) {
  const bool same = at::isFloatingType(output.type) ? made.is_floating_point()
                                                    : made.scalar_type() == output.type;
  if (same && made.layout() == at::kStrided) return;
  throw data_error(where, "'", output.name, "' is of the type ", at::toString(made.scalar_type()),
                   "; the file says ", at::toString(output.type));
}

using Made = c10::SmallVector<at::Tensor, 3>;

/// The tensors of a stack, which gives them away.
Made tensors_in(c10::Stack& stack) {
  Made made;
  for (c10::IValue& each : stack) {
    if (each.isTensor())
      made.push_back(std::move(each).toTensor());
    else if (each.isTensorList())
      for (const at::Tensor& item : each.toTensorVector()) made.push_back(item);
  }
  return made;
}

}  // namespace

CallKind kind_of(const GraphNode& node) {
  if (node.name == kBatchNormOperator) return CallKind::BatchNorm;
  if (is_dropout(node.name)) return CallKind::Dropout;
  if (node.name == "aten::layer_norm") return CallKind::LayerNorm;
  if (node.name == "aten::adaptive_avg_pool2d") return CallKind::AverageTo;
  if (node.name == "aten::view" && node.overload.empty()) return CallKind::View;
  return CallKind::Plain;
}

const MatchedArgument* GraphCall::argument(const std::string& name) const {
  const auto index = handle->schema().argumentIndexWithName(name);
  return index ? &arguments[static_cast<std::size_t>(*index)] : nullptr;
}

MatchedArgument* GraphCall::argument(const std::string& name) {
  return const_cast<MatchedArgument*>(std::as_const(*this).argument(name));
}

c10::IValue GraphCall::value(const MatchedArgument& from, const GraphFrame& frame,
                             const Pass& pass) const {
  switch (from.source) {
    case Source::Constant: return from.constant;
    case Source::Frame: return frame.tensors[from.place];
    case Source::Size: return frame.of(from.size);
    case Source::Switch: return from.constant.toBool() && pass.training;
    case Source::Type: return static_cast<std::int64_t>(frame.type);
    case Source::Device: return frame.device;
    case Source::Sizes: {
      std::vector<std::int64_t> sizes;
      for (const MatchedArgument& item : from.items)
        sizes.push_back(value(item, frame, pass).toInt());
      return sizes;
    }
    case Source::List: break;
  }
  c10::List<at::Tensor> tensors;
  c10::List<std::optional<at::Tensor>> optionals;
  for (const MatchedArgument& item : from.items) {
    const c10::IValue one = value(item, frame, pass);
    if (!from.optional)
      tensors.push_back(one.toTensor());
    else
      optionals.push_back(one.isNone() ? std::nullopt : std::optional(one.toTensor()));
  }
  return from.optional ? c10::IValue(optionals) : c10::IValue(tensors);
}

c10::IValue GraphCall::value(const std::string& name, const GraphFrame& frame,
                             const Pass& pass) const {
  const MatchedArgument* found = argument(name);
  if (found == nullptr) throw data_error(node->where, "has no argument '", name, "'");
  return value(*found, frame, pass);
}

at::Tensor GraphCall::tensor(const std::string& name, const GraphFrame& frame,
                             const Pass& pass) const {
  const c10::IValue found = value(name, frame, pass);
  return found.isNone() ? at::Tensor() : found.toTensor();
}

std::vector<at::Tensor> GraphCall::tensors(const GraphFrame& frame) const {
  std::vector<at::Tensor> found;
  for (const MatchedArgument& from : arguments) {
    if (from.source == Source::Frame) found.push_back(frame.tensors[from.place]);
    for (const MatchedArgument& item : from.items)
      if (item.source == Source::Frame) found.push_back(frame.tensors[item.place]);
  }
  return found;
}

c10::Stack GraphCall::given(const GraphFrame& frame, const Pass& pass) const {
  c10::Stack stack;
  stack.reserve(arguments.size());
  for (const MatchedArgument& from : arguments) stack.push_back(value(from, frame, pass));
  return stack;
}

void GraphCall::compute(c10::Stack& stack) const {
  if (kind == CallKind::View)
    stack = {stack[0].toTensor().reshape(stack[1].toIntVector())};
  else if (kind == CallKind::LayerNorm && !stack[2].isNone())
    stack = {layer_norm_in_two_formats(
        stack[0].toTensor(), stack[1].toIntVector(), stack[2].toTensor(),
        stack[3].isNone() ? at::Tensor() : stack[3].toTensor(), stack[4].toDouble())};
  else if (kind == CallKind::AverageTo)
    stack = {average_to(stack[0].toTensor(), stack[1].toIntVector().at(0),
                        stack[1].toIntVector().at(1))};
  else
    handle->callBoxed(&stack);
}

void GraphCall::run(GraphFrame& frame, const Pass& pass) const {
  c10::Stack stack = given(frame, pass);
  compute(stack);
  store(stack, frame);
}

void GraphCall::store(c10::Stack& returned, GraphFrame& frame) const {
  Made made = tensors_in(returned);
  store(made, frame);
}

void GraphCall::store(std::span<at::Tensor> made, GraphFrame& frame) const {
  if (made.size() != outputs.size())
    throw data_error(node->where, "returns ", counted(made.size(), "tensor"), "; the file says ",
                     outputs.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    // torch.export is wrong about the states of an LSTM, which matters to nobody who reads none.
    const bool unread_state =
        node->name == "aten::lstm" && i > 0 && std::ranges::count(ends, outputs[i]) > 0;
    if (!unread_state) check_shape(node->outputs[i], made[i], frame, node->where);
    check_type(node->outputs[i], made[i], node->where);
    frame.tensors[outputs[i]] = std::move(made[i]);
  }
}

}  // namespace pipewright
