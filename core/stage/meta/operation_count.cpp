// SPDX-License-Identifier: Apache-2.0
#include "core/stage/meta/operation_count.h"

#include <ATen/record_function.h>

#include <string_view>

#include "core/stage/torch.h"

namespace pipewright {
namespace {

thread_local double* counting = nullptr;

/// Index of the first of two adjacent arguments that the operator `name` multiplies as matrices (or
/// batches of them); −1 if it is no matrix product.
int first_factor(std::string_view name) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::mv") return 0;
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::addmv") return 1;
  return -1;
}

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& call) {
  const int first = first_factor(call.name());
  if (first < 0) return nullptr;
  const auto inputs = call.inputs();
  const at::Tensor& a = inputs[static_cast<std::size_t>(first)].toTensor();
  const at::Tensor& b = inputs[static_cast<std::size_t>(first) + 1].toTensor();
  if (!a.is_meta()) return nullptr;
  const std::int64_t columns = b.dim() == 1 ? 1 : b.size(-1);
  count_multiply_adds(static_cast<double>(a.numel()) * static_cast<double>(columns));
  return nullptr;
}

}  // namespace

OperationCount::OperationCount()
    : before_(counting),
      callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(count).needsInputs(true).scopes(
              {at::RecordScope::FUNCTION}))) {
  counting = &flops_;
}

OperationCount::~OperationCount() {
  at::removeCallback(callback_);
  counting = before_;
}

double OperationCount::flops() const {
  return flops_;
}

void count_multiply_adds(double count) {
  if (counting != nullptr) *counting += 2 * count;
}

}  // namespace pipewright
