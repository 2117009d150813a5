// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/powersgd.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/tensors/torch.h"
#include "core/tensors/upload.h"

namespace pipewright {
namespace {

at::Tensor random_start(std::int64_t rows, std::int64_t rank, std::uint64_t seed,
                        std::string_view weight) {
  const RandomStream stream(seed, "powersgd", stable_hash(weight));
  const at::Tensor start = at::empty({rows, rank}, at::TensorOptions(at::kFloat));
  auto* const value = start.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < start.numel(); ++i)
    value[i] = static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)));
  return start;
}

}  // namespace

FactorSizes factor_sizes(at::IntArrayRef weight, std::int64_t rank) {
  const std::int64_t values = c10::multiply_integers(weight);
  if (weight.size() < 2 || values == 0) return {};
  FactorSizes sizes{.rows = weight[0], .columns = values / weight[0]};
  const std::int64_t smaller = std::min({rank, sizes.rows, sizes.columns});
  if (smaller * (sizes.rows + sizes.columns) < values) sizes.rank = smaller;
  return sizes;
}

PowerSgd::PowerSgd(at::IntArrayRef sizes, std::int64_t rank, std::uint64_t seed,
                   std::string_view weight)
    : sizes_(sizes.vec()), factors_(factor_sizes(sizes, rank)) {
  if (compresses()) q_ = random_start(factors_.columns, factors_.rank, seed, weight);
}

at::Tensor PowerSgd::left(const at::Tensor& gradient) {
  PIPEWRIGHT_CHECK(compresses() && gradient.sizes() == at::IntArrayRef(sizes_));
  const at::NoGradGuard no_grad;
  const at::Tensor m = gradient.to(at::kFloat).reshape({factors_.rows, factors_.columns});
  q_ = q_.is_cpu() ? upload(q_, m.device()) : q_.to(m.device());
  v_ = error_.defined() ? m + error_.to(m.device()) : m;
  return v_.matmul(q_);
}

at::Tensor PowerSgd::right(const at::Tensor& mean_left) {
  PIPEWRIGHT_CHECK(v_.defined(), "right() without left()");
  const at::NoGradGuard no_grad;
  p_ = std::get<0>(at::linalg_qr(mean_left));
  return v_.t().matmul(p_);
}

at::Tensor PowerSgd::approximation(const at::Tensor& mean_right) {
  PIPEWRIGHT_CHECK(p_.defined(), "approximation() without right()");
  const at::NoGradGuard no_grad;
  const at::Tensor approximation = p_.matmul(mean_right.t());
  const at::Tensor error = v_ - approximation;
  // A gradient that overflowed must not stay in the error for ever. All replicas see the same sums,
  // but errors are their own.
  const at::Tensor before = error_.defined() ? error_.to(error.device()) : at::zeros_like(error);
  const at::Tensor fine = approximation.isfinite().all().logical_and(error.isfinite().all());
  error_ = at::where(fine, error, before);
  q_ = at::where(mean_right.isfinite().all(), mean_right, q_);
  v_ = p_ = at::Tensor();
  return approximation.view(sizes_);
}

NamedTensors PowerSgd::state() const {
  NamedTensors state;
  if (q_.defined()) state.emplace_back("q", q_);
  if (error_.defined()) state.emplace_back("error", error_);
  return state;
}

void PowerSgd::restore(const NamedTensors& state) {
  error_ = at::Tensor();
  for (const auto& [name, tensor] : state) {
    const bool is_q = name == "q";
    const std::vector<std::int64_t> expected{is_q ? factors_.columns : factors_.rows,
                                             is_q ? factors_.rank : factors_.columns};
    if (!compresses() || tensor.scalar_type() != at::kFloat ||
        tensor.sizes() != at::IntArrayRef(expected))
      throw Error(ErrorKind::Data, concat("PowerSGD's state '", name, "' does not fit its weight"));
    (is_q ? q_ : error_) = tensor.clone();
  }
}

}  // namespace pipewright
