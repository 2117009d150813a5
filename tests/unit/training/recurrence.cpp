// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/training/recurrence.h"

#include <algorithm>

#include "core/tensors/torch.h"

namespace pipewright::test {
namespace {

/// Magnitudes that differ by less, relatively, are the same: single eigenvalues of these matrices
/// are good to some 10⁻¹³.
constexpr double kSameMagnitude = 1e-8;

/// The state of the recurrence: rows W(i), W(i−1), …, then δ(i).
struct History {
  std::vector<at::Tensor> weights;
  at::Tensor drift;
};

History stepped(const Recurrence& r, double lr, const History& now) {
  const auto stages = static_cast<std::int64_t>(r.readings.size());
  const at::Tensor read = at::empty({stages}, at::kDouble), delays = at::empty_like(read);
  for (std::int64_t k = 0; k < stages; ++k) {
    const Reading& reading = r.readings[static_cast<std::size_t>(k)];
    const auto at = static_cast<std::size_t>(reading.delay);
    const at::Tensor& version = now.weights[at];
    read[k] = version[k] + reading.ahead * (version[k] - now.weights[at + 1][k]);
    delays[k] = reading.delay;
  }
  at::Tensor backward = now.weights[0];
  if (!r.drift_decays.empty()) backward = backward - delays * now.drift;
  const at::Tensor gradient = r.hessian.mv(read) + r.discrepancy * (read - backward);
  History next;
  next.weights.push_back(now.weights[0] + r.momentum * (now.weights[0] - now.weights[1]) -
                         lr * gradient);
  next.weights.insert(next.weights.end(), now.weights.begin(), now.weights.end() - 1);
  next.drift = at::zeros_like(now.drift);
  if (!r.drift_decays.empty()) {
    const at::Tensor decay = at::tensor(r.drift_decays, at::kDouble);
    next.drift = decay * now.drift + (1 - decay) * (next.weights[0] - now.weights[0]);
  }
  return next;
}

at::Tensor flat(const History& history) {
  std::vector<at::Tensor> all = history.weights;
  all.push_back(history.drift);
  return at::cat(all);
}

History from_flat(const at::Tensor& values, std::int64_t stages) {
  History history{.weights = values.split(stages), .drift = {}};
  history.drift = history.weights.back();
  history.weights.pop_back();
  return history;
}

}  // namespace

std::vector<std::complex<double>> slowest_modes(const Recurrence& r, double lr) {
  const auto stages = static_cast<std::int64_t>(r.readings.size());
  const int longest = std::ranges::max_element(r.readings, {}, &Reading::delay)->delay;
  const std::int64_t size = stages * (longest + 3);
  std::vector<at::Tensor> columns;
  const at::Tensor identity = at::eye(size, at::kDouble);
  for (std::int64_t i = 0; i < size; ++i)
    columns.push_back(flat(stepped(r, lr, from_flat(identity[i], stages))));
  const at::Tensor modes = at::linalg_eigvals(at::stack(columns, 1));
  const double largest = modes.abs().max().item<double>();
  std::vector<std::complex<double>> slowest;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto mode = modes[i].item<c10::complex<double>>();
    if (std::abs(mode) >= (1 - kSameMagnitude) * largest)
      slowest.emplace_back(mode.real(), mode.imag());
  }
  return slowest;
}

double slowest_magnitude(const Recurrence& recurrence, double lr) {
  return std::abs(slowest_modes(recurrence, lr).front());
}

double stability_edge(const Recurrence& recurrence) {
  double stable = 0, unstable = 1e-3;
  while (slowest_magnitude(recurrence, unstable) <= 1) {
    stable = unstable;
    unstable *= 1.25;
  }
  for (int i = 0; i < 50; ++i) {
    const double middle = (stable + unstable) / 2;
    (slowest_magnitude(recurrence, middle) <= 1 ? stable : unstable) = middle;
  }
  return stable;
}

}  // namespace pipewright::test
