// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_recurrent.h"

#include "core/base/error_at.h"
#include "core/base/text.h"
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

void check_one(const GraphCall& call, const char* what, std::size_t i, const at::Tensor& tensor,
               const std::vector<std::int64_t>& expected) {
  if (tensor.sizes() != at::IntArrayRef(expected))
    throw data_error(call.node->where, what, " ", i, " has the shape ",
                     shape_text(tensor.sizes().vec()), "; expected ", shape_text(expected));
}

/// Shapes of the parameters of one layer and direction that reads `inputs` values a step.
std::vector<std::vector<std::int64_t>> parameter_shapes(std::int64_t gates, std::int64_t inputs,
                                                        std::int64_t hidden, std::int64_t given_on,
                                                        bool biases) {
  std::vector<std::vector<std::int64_t>> all{{gates * hidden, inputs}, {gates * hidden, given_on}};
  if (biases) all.insert(all.end(), 2, {gates * hidden});
  if (given_on != hidden) all.push_back({given_on, hidden});  // a projection
  return all;
}

}  // namespace

void check_recurrent(const GraphCall& call, const GraphFrame& frame) {
  const auto fail = [&](const std::string& message) {
    throw data_error(call.node->where, message);
  };
  if (call.argument("batch_sizes") != nullptr)
    fail("reads packed sequences; expected sequences of one length");
  const c10::IValue hx = call.value("hx", frame, {});
  const std::vector<at::Tensor> states =
      hx.isTensor() ? std::vector{hx.toTensor()} : hx.toTensorVector();
  const std::vector<at::Tensor> params = call.value("params", frame, {}).toTensorVector();
  const at::Tensor input = call.tensor("input", frame, {});
  const bool lstm = call.node->name == "aten::lstm";
  if (input.dim() != 3 || states.size() != (lstm ? 2U : 1U) || states[0].dim() != 3 ||
      states.back().dim() != 3)
    fail(concat(
        "has an input of ", input.dim(), " dimensions and ", counted(states.size(), "state"),
        "; expected three dimensions, and of each state, of which an LSTM has two and others one"));
  const bool biases = call.value("has_biases", frame, {}).toBool();
  const std::int64_t layers = call.value("num_layers", frame, {}).toInt();
  const std::int64_t directions = call.value("bidirectional", frame, {}).toBool() ? 2 : 1;
  const std::int64_t batch = input.size(call.value("batch_first", frame, {}).toBool() ? 0 : 1);
  const std::int64_t given_on = states[0].size(2), hidden = states.back().size(2);
  const std::int64_t gates = lstm ? 4 : call.node->name == "aten::gru" ? 3 : 1;
  const std::size_t each = parameter_shapes(gates, 0, hidden, given_on, biases).size();
  if (layers < 1 || layers > std::ssize(params) ||
      params.size() != static_cast<std::size_t>(layers * directions) * each)
    fail(concat("has ", counted(params.size(), "parameter"), "; expected ", each,
                " for each direction of ", counted(layers, "layer")));
  for (std::size_t i = 0; i < states.size(); ++i)
    check_one(call, "state", i, states[i],
              {layers * directions, batch, i == 0 ? given_on : hidden});
  for (std::size_t i = 0; i < params.size(); ++i) {
    const bool first = i < static_cast<std::size_t>(directions) * each;
    const std::int64_t inputs = first ? input.size(2) : directions * given_on;
    check_one(call, "parameter", i, params[i],
              parameter_shapes(gates, inputs, hidden, given_on, biases)[i % each]);
  }
}

std::int64_t recurrent_layers(const GraphCall& call) {
  const MatchedArgument *layers = call.argument("num_layers"), *params = call.argument("params");
  const bool known = layers != nullptr && params != nullptr && call.argument("hx") != nullptr &&
                     layers->source == MatchedArgument::Source::Constant &&
                     layers->constant.isInt();
  const std::int64_t count = known ? layers->constant.toInt() : 0;
  if (count < 1 || count > std::ssize(params->items) || std::ssize(params->items) % count != 0)
    throw data_error(call.node->where, "drops between ", counted(count, "layer"), " that share ",
                     params == nullptr ? 0 : params->items.size(),
                     " parameters; expected as many for each layer");
  return count;
}

void run_by_layers(const GraphCall& call, GraphFrame& frame, const Pass& pass,
                   const DropBetween& drop) {
  c10::Stack given = call.given(frame, pass);
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
