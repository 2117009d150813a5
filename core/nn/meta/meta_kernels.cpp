// SPDX-License-Identifier: Apache-2.0
#include "core/nn/meta/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ConvUtils.h>
#include <torch/library.h>

#include <algorithm>

#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using c10::IValue;
using c10::Stack;

using Computed = Stack (*)(const Stack& given);

template <Computed compute>
void boxed(const c10::OperatorHandle& op, Stack* stack) {
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  Stack made = compute(Stack(begin, stack->end()));
  stack->erase(begin, stack->end());
  std::ranges::move(made, std::back_inserter(*stack));
}

Stack like_first(const Stack& given) {
  return {at::empty_like(given[0].toTensor())};
}

Stack first(const Stack& given) {
  return {given[0]};
}

/// The shape that tensors have together, by PyTorch's rules of broadcasting.
std::vector<std::int64_t> broadcast(at::ArrayRef<IValue> tensors) {
  std::vector<std::int64_t> sizes;
  for (const IValue& each : tensors) sizes = at::infer_size(sizes, each.toTensor().sizes());
  return sizes;
}

/// Resizes an operator's last argument, into which it writes.
Stack into_last(const Stack& given) {
  given.back().toTensor().resize_(
      broadcast(at::ArrayRef<IValue>(given).slice(0, given.size() - 1)));
  return {given.back()};
}

Stack one_of_first(const Stack& given) {
  return {at::empty({}, given[0].toTensor().options())};
}

/// A kernel for (self, dim, correction, keepdim), whose result has the shape of a sum.
Stack deviation(const Stack& given) {
  const auto dims = given[1].toOptional<std::vector<std::int64_t>>();
  return {at::sum(given[0].toTensor(), dims ? at::OptionalIntArrayRef(*dims) : std::nullopt,
                  given[3].toBool())};
}

Stack deviations(const Stack& given) {
  return {deviation(given)[0], deviation(given)[0]};
}

Stack truth_of_first(const Stack& given) {
  const at::Tensor& self = given[0].toTensor();
  return {at::empty_like(self, self.options().dtype(at::kBool))};
}

/// Division rounded down.
Stack quotient(const Stack& given) {
  return {at::div(given[0].toTensor(), given[1].toTensor(), "floor")};
}

/// The columns that im2col makes, of (self, kernel_size, dilation, padding, stride).
Stack windows(const Stack& given) {
  const at::Tensor& self = given[0].toTensor();
  const auto number = [&](std::size_t of, std::size_t i) { return given[of].toIntVector().at(i); };
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "im2col: expected 3 or 4 dimensions");
  std::vector<std::int64_t> sizes = self.sizes().vec();
  std::int64_t count = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = sizes[sizes.size() - 2 + i], stride = number(4, i);
    TORCH_CHECK(stride > 0 && number(1, i) > 0 && number(1, i) < (1 << 20) && number(2, i) > 0,
                "im2col: expected strides, dilations and windows of 1 or more");
    const std::int64_t room = size + 2 * number(3, i) - number(2, i) * (number(1, i) - 1) - 1;
    TORCH_CHECK(room >= 0, "im2col: expected a window that fits");
    count *= room / stride + 1;
  }
  sizes.pop_back();
  sizes.back() = count;
  sizes[sizes.size() - 2] *= number(1, 0) * number(1, 1);
  return {at::empty(sizes, self.options())};
}

Stack reverse_difference(const Stack& given) {
  return {at::sub(given[1].toTensor(), given[0].toTensor(), given[2].toScalar())};
}

Stack chosen(const Stack& given) {
  const at::Tensor &condition = given[0].toTensor(), &self = given[1].toTensor();
  return {at::empty(broadcast(given),
                    condition.options().dtype(at::result_type(self, given[2].toTensor())))};
}

Stack selected(const Stack& given) {
  const at::Tensor &self = given[0].toTensor(), &index = given[2].toTensor();
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  std::vector<std::int64_t> sizes = self.sizes().vec();
  const auto place = static_cast<std::size_t>(at::maybe_wrap_dim(given[1].toInt(), self.dim()));
  if (!sizes.empty()) sizes[place] = index.numel();
  return {at::empty(sizes, self.options())};
}

/// An adaptive pool of as many dimensions as it has output sizes.
Stack averaged(const Stack& given) {
  const at::Tensor& self = given[0].toTensor();
  const std::vector<std::int64_t> to = given[1].toIntVector();
  const std::int64_t more = self.dim() - std::ssize(to);
  TORCH_CHECK(more == 1 || more == 2,
              "adaptive_avg_pool(): expected one output size for each "
              "dimension but those of samples and channels");
  std::vector<std::int64_t> sizes = self.sizes().vec();
  std::ranges::copy(to, sizes.end() - std::ssize(to));
  return {at::empty(sizes, self.options())};
}

Stack normalised(const Stack& given) {
  const at::Tensor& input = given[0].toTensor();
  const at::Tensor of_channels = at::empty({input.size(1)}, input.options());
  return {at::empty_like(input), of_channels, of_channels};
}

/// LibTorch has compared the shapes before it asks for this kernel.
Stack convolved(const Stack& given) {
  const at::Tensor &input = given[0].toTensor(), &weight = given[1].toTensor();
  const auto numbers = [&](std::size_t i) { return given[i].toIntVector(); };
  const auto stride = numbers(3), padding = numbers(4), dilation = numbers(5);
  const bool transposed = given[6].toBool();
  const auto sizes =
      transposed
          ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, numbers(7), stride,
                                        dilation, given[8].toInt())
          : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  return {at::empty(sizes, input.options())};
}

template <Computed compute>
void fill(torch::Library& library, std::initializer_list<const char*> names) {
  for (const std::string name : names) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string overload = dot == name.size() ? "" : name.substr(dot + 1);
    const auto op =
        c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), overload});
    if (op && !op->hasKernelForDispatchKey(c10::DispatchKey::Meta))
      library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<boxed<compute>>());
  }
}

torch::Library filled() {
  torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
#define FILLED(compute, ...) fill<compute>(library, {__VA_ARGS__});
#include "core/nn/meta/filled_kernels.inc"
#undef FILLED
  return library;
}

}  // namespace

void fill_meta_kernels() {
  static const torch::Library library = filled();
}

}  // namespace pipewright
