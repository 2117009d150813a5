// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_recurrent.h"

#include "core/base/error.h"
#include "core/base/wording.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

std::size_t place_of(const GraphCall& call, const char* argument) {
  const auto index = call.handle->schema().argumentIndexWithName(argument);
  PIPEWRIGHT_CHECK(index.has_value(), call.node->name, " has no argument ", argument);
  return static_cast<std::size_t>(*index);
}

at::Tensor rows_of(const at::Tensor& states, std::int64_t layer, std::int64_t directions) {
  return states.narrow(0, layer * directions, directions);
}

/// The states of one layer: of an LSTM a list of two, of others one tensor.
c10::IValue states_of(const c10::IValue& all, std::int64_t layer, std::int64_t directions) {
  if (all.isTensor()) return rows_of(all.toTensor(), layer, directions);
  c10::List<at::Tensor> some;
  for (const at::Tensor& each : all.toTensorVector())
    some.push_back(rows_of(each, layer, directions));
  return some;
}

}  // namespace

std::int64_t recurrent_layers(const GraphCall& call) {
  const MatchedArgument *layers = call.argument("num_layers"), *params = call.argument("params");
  const bool known = layers != nullptr && params != nullptr && call.argument("hx") != nullptr &&
                     layers->source == MatchedArgument::Source::Constant &&
                     layers->constant.isInt();
  const std::int64_t count = known ? layers->constant.toInt() : 0;
  if (count < 1 || count > std::ssize(params->items) || std::ssize(params->items) % count != 0)
    throw Error(ErrorKind::Data,
                concat("drops between ", counted(count, "layer"), " that share ",
                       params == nullptr ? 0 : params->items.size(),
                       " parameters; expected as many for each layer"),
                call.node->where);
  return count;
}

void run_by_layers(const GraphCall& call, GraphFrame& frame, const Pass& pass,
                   const DropBetween& drop) {
  c10::Stack given;
  for (const MatchedArgument& from : call.arguments) given.push_back(call.value(from, frame, pass));
  const std::int64_t layers = recurrent_layers(call);
  const std::int64_t directions = given[place_of(call, "bidirectional")].toBool() ? 2 : 1;
  const std::size_t hx = place_of(call, "hx"), params = place_of(call, "params");
  const c10::IValue states = given[hx];
  const std::vector<at::Tensor> weights = given[params].toTensorVector();
  const std::size_t each = weights.size() / static_cast<std::size_t>(layers);
  given[place_of(call, "num_layers")] = std::int64_t{1};
  std::vector<std::vector<at::Tensor>> made(call.outputs.size());  // states by layer
  at::Tensor x = given[0].toTensor();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto first = weights.begin() + layer * static_cast<std::ptrdiff_t>(each);
    given[0] = layer == 0 ? x : drop(static_cast<std::size_t>(layer) - 1, x);
    given[hx] = states_of(states, layer, directions);
    given[params] = c10::List<at::Tensor>(at::ArrayRef<at::Tensor>(&*first, each));
    c10::Stack stack = given;
    call.handle->callBoxed(&stack);
    PIPEWRIGHT_CHECK(stack.size() == made.size(), call.node->where);
    x = stack[0].toTensor();
    for (std::size_t i = 1; i < stack.size(); ++i) made[i].push_back(stack[i].toTensor());
  }
  std::vector<at::Tensor> results{x};
  for (std::size_t i = 1; i < made.size(); ++i) results.push_back(at::cat(made[i], 0));
  call.store(results, frame);
}

}  // namespace pipewright
