// SPDX-License-Identifier: Apache-2.0
#include "core/nn/meta/operation_count.h"

#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <string_view>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// Index of the first of two adjacent arguments that the operator `name` multiplies as matrices (or
/// batches of them); −1 if it is no matrix product.
int first_factor(std::string_view name) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::mv") return 0;
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addmv") return 1;
  return -1;
}

void count_product(const at::RecordFunction& call) {
  const int first = first_factor(call.name());
  if (first < 0) return;
  const auto inputs = call.inputs();
  const at::Tensor& a = inputs[static_cast<std::size_t>(first)].toTensor();
  const at::Tensor& b = inputs[static_cast<std::size_t>(first) + 1].toTensor();
  if (!a.is_meta()) return;
  const std::int64_t columns = b.dim() == 1 ? 1 : b.size(-1);
  count_multiply_adds(static_cast<double>(a.numel()) * static_cast<double>(columns));
}

/// Whether the operator only looks at the memory of its argument, or allocates some.
bool computes_nothing(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  for (const char* const silent :
       {"aten::empty", "aten::new_empty", "aten::resize_", "aten::_unsafe_view"})
    if (name.starts_with(silent)) return true;
  const auto schema = call.operator_schema();
  if (!schema || schema->returns().empty()) return false;
  const c10::AliasInfo* const alias = schema->returns().front().alias_info();
  return alias != nullptr && !alias->isWrite();
}

}  // namespace

/// One call of an operator on this thread.
struct OperatorCall final : at::ObserverContext {
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    count_product(call);
    auto begun = std::make_unique<OperatorCall>();
    begun->outer = innermost;
    begun->starts_nothing = computes_nothing(call);
    innermost = begun.get();
    return begun;
  }

  static void end(const at::RecordFunction&, at::ObserverContext* context) {
    const auto& ended = static_cast<const OperatorCall&>(*context);
    innermost = ended.outer;
    if (!ended.calls_others && ended.starts_nothing) return;
    if (innermost != nullptr) innermost->calls_others = true;
    if (!ended.calls_others) count_operators(1);
  }

  static thread_local OperatorCall* innermost;
  OperatorCall* outer = nullptr;
  bool calls_others = false;  ///< that compute something
  bool starts_nothing = false;
};

thread_local OperatorCall* OperatorCall::innermost = nullptr;

OperationCount::OperationCount()
    : callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&OperatorCall::begin, &OperatorCall::end)
              .needsInputs(true)
              .scopes({at::RecordScope::FUNCTION}))) {
  PIPEWRIGHT_CHECK(counting() == nullptr, "operations are counted already");
  counting() = &counts_;
}

OperationCount::~OperationCount() {
  at::removeCallback(callback_);
  counting() = nullptr;
}

OperationCount::Counts*& OperationCount::counting() {
  thread_local Counts* counts = nullptr;
  return counts;
}

double OperationCount::flops() const {
  return counts_.flops;
}

std::int64_t OperationCount::kernels() const {
  return counts_.kernels;
}

void count_operators(std::int64_t count) {
  if (OperationCount::counting() != nullptr) OperationCount::counting()->kernels += count;
}

void count_multiply_adds(double count) {
  if (OperationCount::counting() != nullptr) OperationCount::counting()->flops += 2 * count;
}

}  // namespace pipewright
