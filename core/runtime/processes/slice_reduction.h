/// The sum of tensors over one stage's replicas in several processes: each owns a slice,
/// receives the others' parts of it, adds them in order 0 … R−1, and gives the sum back to all. The
/// same bits as adding whole tensors in that order.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/runtime/devices/device_group.h"
#include "core/runtime/processes/wire_team.h"

namespace pipewright {

class SliceReduction {
 public:
  /// `peers`: process of each replica. `group`: theirs; null: through the host.
  SliceReduction(WireTeam& team, DeviceGroup* group, int channel, std::vector<int> peers,
                 int replica);

  /// The tensors, of one type, become the sum; undefined ones stay so, and are so in every replica.
  void run(std::vector<at::Tensor>& tensors);

 private:
  at::Tensor slice(const at::Tensor& flat, std::size_t replica) const;
  at::Tensor fold(const at::Tensor& own);
  void share(const at::Tensor& sum);
  /// With every other replica: sends out[r], fills in[r].
  void exchange(const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& in);
  void exchange_on_host(const std::vector<at::Tensor>& out, const std::vector<at::Tensor>& in);

  WireTeam& team_;
  DeviceGroup* group_;
  int channel_;
  std::vector<int> peers_;
  std::size_t replica_;
};

}  // namespace pipewright
