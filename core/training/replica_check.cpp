// SPDX-License-Identifier: Apache-2.0
#include "core/training/replica_check.h"

#include <array>

#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

/// The sum of the weights' bits, read as integers: it depends on no order of additions.
std::uint64_t checksum_of(const at::Tensor& weights) {
  const at::ScalarType same_width = weights.element_size() == 8   ? at::kLong
                                    : weights.element_size() == 4 ? at::kInt
                                                                  : at::kShort;
  return static_cast<std::uint64_t>(weights.view(same_width).sum(at::kLong).item<std::int64_t>());
}

}  // namespace

void check_replicas(const Plan& plan, Team& team, const std::vector<std::unique_ptr<Stage>>& stages,
                    std::int64_t minibatches) {
  const int replicas = plan.experiment->pipeline.replicas;
  if (replicas == 1) return;
  const std::size_t per_replica = stages.size() / static_cast<std::size_t>(replicas);
  std::vector<double> halves(2 * stages.size());  // of 32 bits, which a double holds exactly
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i] == nullptr || stages[i]->weights().latest().numel() == 0) continue;
    const std::uint64_t checksum = checksum_of(stages[i]->weights().latest());
    halves[2 * i] = static_cast<double>(checksum >> 32);
    halves[2 * i + 1] = static_cast<double>(checksum & 0xffff'ffff);
  }
  if (team.size() > 1) team.sum(halves);  // of the process that has the stage, and zeros
  const auto checksum = [&](std::size_t i) { return std::array{halves[2 * i], halves[2 * i + 1]}; };
  for (std::size_t i = per_replica; i < stages.size(); ++i)
    if (checksum(i) != checksum(i % per_replica))
      throw Error(ErrorKind::Bug,
                  concat("replicas 0 and ", i / per_replica, " of stage ", i % per_replica,
                         " have different weights after ", minibatches,
                         " mini-batches; their gradients were not summed as one"));
}

}  // namespace pipewright
