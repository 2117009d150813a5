// SPDX-License-Identifier: Apache-2.0
/// The sum of tensors over one stage's replicas in several processes, as a reduce-scatter and an
/// all-gather: each replica owns a slice, receives the others' parts of it, adds them in order
/// 0 … R−1, and sends the sum to all. The bits are those of adding whole tensors in that order.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/processes/wire_team.h"
#include "core/runtime/devices/device_group.h"

namespace pipewright {

class SliceReduction {
 public:
  /// `peers`: process of each replica; `group`: their device group, or null to go through the host.
  SliceReduction(WireTeam& team, DeviceGroup* group, int channel, std::vector<int> peers,
                 int replica);

  /// Replaces the tensors, all of one type, by their sums. A tensor that is undefined here must be
  /// undefined in every replica, and stays so.
  void run(std::vector<at::Tensor>& tensors);

 private:
  at::Tensor slice(const at::Tensor& flat, std::size_t replica) const;
  at::Tensor fold(const at::Tensor& own);
  void share(const at::Tensor& sum);
  /// Exchanges with every other replica r: sends out[r] and receives into in[r].
  void exchange(const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& in);
  void exchange_on_host(const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& in);

  WireTeam& team_;
  DeviceGroup* group_;
  int channel_;
  std::vector<int> peers_;
  std::size_t replica_;
};

}  // namespace pipewright
