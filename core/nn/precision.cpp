// SPDX-License-Identifier: Apache-2.0
#include "core/nn/precision.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {

bool has_bfloat16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") > 0;
#elif defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#else
  return false;
#endif
}

std::string precision_remark(const Precision& precision, bool on_cpu, bool instructions) {
  if (!on_cpu) return {};
  if (precision.values == at::kHalf)
    return "train.precision is float16, which is for GPUs; on a processor it takes longer than "
           "float32, and bfloat16 needs no loss scaling";
  if (instructions || precision.values != at::kBFloat16) return {};
  return "train.precision is bfloat16, for which this processor has no instructions; it takes "
         "longer than float32";
}

void LossScale::updated() {
  if (++since < kDoubledAfter) return;
  since = 0;
  if (scale < kLargest) scale *= 2;
}

void LossScale::skip(int stage) {
  if (scale == 1)
    throw Error(ErrorKind::NotFinite,
                concat("gradients of stage ", stage,
                       " are beyond float16's largest number, 65504, even with a loss scale of 1; "
                       "try a smaller learning rate, or train.precision: bfloat16, which has "
                       "float32's range"),
                concat("stage ", stage));
  scale /= 2;
  since = 0;
  ++skipped;
}

void LossScale::adopt(Tensors& gradients, const at::Tensor& sent) const {
  // A tensor of one dimension has the products computed in float32, where any ratio fits.
  const at::Tensor ratio = sent.to(at::kFloat).reciprocal().mul(scale).view({1});
  for (at::Tensor& gradient : gradients) {
    at::Tensor adopted = at::empty_like(gradient);
    gradient = at::mul_out(adopted, gradient, ratio);
  }
}

std::vector<at::Tensor> magnitudes(at::TensorList tensors) {
  std::vector<at::Tensor> defined;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.is_floating_point()) defined.push_back(tensor);
  return defined.empty() ? defined : at::_foreach_norm(defined, 1, at::kFloat);
}

}  // namespace pipewright
