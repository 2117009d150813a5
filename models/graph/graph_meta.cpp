// SPDX-License-Identifier: Apache-2.0
#include "models/graph/graph_meta.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include "core/base/error_at.h"
#include "core/base/wording.h"
#include "core/nn/meta/on_meta.h"
#include "core/nn/meta/operation_count.h"
#include "core/tensors/torch.h"
#include "models/graph/graph_drops.h"
#include "models/graph/graph_operators.h"
#include "models/graph/graph_recurrent.h"
#include "models/graph/graph_schema.h"

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
    throw data_error(call.node->where, "cuts a tensor of ", counted(elements, "element"), " into ",
                     counted(call.outputs.size(), "part"), ", which do not hold them");
}

/// The whole number that an argument is in every forward, if that is known.
std::optional<std::int64_t> known_number(const c10::IValue& value) {
  if (value.isInt()) return value.toInt();
  if (!value.isTensor() || value.toTensor().is_meta() || value.toTensor().numel() != 1) return {};
  return value.toTensor().item<std::int64_t>();
}

/// Refuses to divide integers with rounding towards zero by what may be -1: the processor ends the
/// process where the least integer is divided by -1, and LibTorch checks this in its other integer
/// divisions (`//`, `%`) only.
void check_division(const GraphCall& call, const GraphFrame& frame) {
  const auto integer = [](const GraphOutput& each) { return !at::isFloatingType(each.type); };
  if (!std::ranges::any_of(call.node->outputs, integer)) return;
  const MatchedArgument* const mode = call.argument("rounding_mode");
  if (mode != nullptr && mode->constant.isString() && mode->constant.toStringRef() == "trunc") {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto divisor = known_number(call.value("other", frame, {}));
    if (!divisor || *divisor == -1 || *divisor < -kMost || *divisor > kMost)
      throw data_error(call.node->where, "divides integers with rounding_mode 'trunc' by ",
                       divisor ? std::to_string(*divisor) : "a tensor",
                       "; expected rounding_mode 'floor', or a number of 31 bits that is not -1");
  }
  if (call.argument("divisor_override") == nullptr) return;
  const auto divisor = known_number(call.value("divisor_override", frame, {}));
  if (divisor && *divisor < 1)
    throw data_error(call.node->where, "divides integers by divisor_override ", *divisor,
                     "; expected at least 1");
}

/// Notes the largest tensor that operators make on the meta device, also inside other operators.
class LargestTensor {
 public:
  LargestTensor() : before_(at::get_record_function_tls_()) {
    at::RecordFunctionTLS mine = before_;
    mine.sorted_tls_callbacks_.clear();  // a profile counts none of this
    at::set_record_function_tls_(mine);
    at::addThreadLocalCallback(at::RecordFunctionCallback(nullptr, &noted)
                                   .needsOutputs(true)
                                   .scopes({at::RecordScope::FUNCTION}));
    elements() = 0;
  }
  ~LargestTensor() { at::set_record_function_tls_(before_); }
  LargestTensor(const LargestTensor&) = delete;
  LargestTensor& operator=(const LargestTensor&) = delete;

  static std::size_t& elements() {
    thread_local std::size_t most = 0;
    return most;
  }

 private:
  static void note(const at::Tensor& made) {
    if (made.defined() && made.is_meta() && made.layout() == at::kStrided)
      elements() = std::max(elements(), made.storage().nbytes() / made.element_size());
  }
  static void noted(const at::RecordFunction& call, at::ObserverContext*) {
    for (const c10::IValue& each : call.outputs())
      if (each.isTensor())
        note(each.toTensor());
      else if (each.isTensorList())
        for (const at::Tensor& item : each.toTensorVector()) note(item);
  }

  at::RecordFunctionTLS before_;
};

/// Refuses tensors that take more memory than any of a training.
void check_memory(std::size_t elements, const GraphCall& call) {
  constexpr std::size_t kMostElements = std::size_t{1} << 31;
  if (elements > kMostElements)
    throw data_error(call.node->where, "makes a tensor of ", elements, " elements; at most ",
                     kMostElements, " are allowed");
}

/// The tensors among the arguments, by whether the schema says that results may be their memory.
struct GivenMemory {
  std::vector<at::Tensor> shared, silent;

  GivenMemory(const GraphCall& call, const c10::Stack& given) {
    const std::set<std::string> shares = operator_use(*call.node).shares;
    for (std::size_t i = 0; i < given.size(); ++i) {
      auto& to = shares.contains(call.handle->schema().arguments()[i].name()) ? shared : silent;
      if (given[i].isTensor())
        to.push_back(given[i].toTensor());
      else if (given[i].isTensorList())
        for (const at::Tensor& item : given[i].toTensorVector()) to.push_back(item);
    }
  }
};

/// Refuses results in memory of an argument that the schema does not share: cuts lie where writes
/// into it change nothing.
void check_memory_of(const at::Tensor& made, const GraphOutput& output, const GraphCall& call,
                     const GivenMemory& given) {
  const auto lies_in = [&](const at::Tensor& other) { return made.is_alias_of(other); };
  if (std::ranges::any_of(given.silent, lies_in) && std::ranges::none_of(given.shared, lies_in))
    throw data_error(call.node->where, "'", output.name,
                     "' lies in memory of an argument, which its schema does not say");
}

}  // namespace

void verify_on_meta(const GraphCall& call, GraphFrame& frame) {
  c10::Stack stack = call.given(frame, {});
  check_parts(call, stack, frame);
  check_division(call, frame);
  if (call.argument("hx") != nullptr) check_recurrent(call, frame);
  const GivenMemory memory(call, stack);
  const LargestTensor largest;
  call.compute(stack);
  call.store(stack, frame);
  check_memory(LargestTensor::elements(), call);
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    check_memory_of(frame.tensors[call.outputs[i]], call.node->outputs[i], call, memory);
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
