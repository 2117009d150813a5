/// Processes of a team whose devices exchange memory over NCCL, without passing through the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/runtime/devices/nccl.h"
#include "core/runtime/program.h"

namespace pipewright {

class WireTeam;

/// An NCCL communicator. Members are called by their place in it.
class DeviceGroup {
 public:
  DeviceGroup(const NcclApi& api, NcclCommunicator communicator, at::Device device);
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  at::Device device() const { return device_; }
  /// To or from a member: contiguous memory of this process's device.
  using Transfer = std::pair<int, at::Tensor>;
  /// Queues them all together on the device's current stream; on each stream's end they are done,
  /// once the members they concern have queued the other half. Sends to a member and receives from
  /// it go in the same order on both sides. Throws Error{Worker}.
  void exchange(const std::vector<Transfer>& out, const std::vector<Transfer>& in);
  /// What has gone wrong in the background, "" if nothing. Any thread.
  std::string failure() const;

 private:
  const NcclApi& api_;
  NcclCommunicator communicator_;
  at::Device device_;
};

/// The groups of one process, kept from program to program: one for each pair of workers and
/// direction in which messages go, so that neither direction waits for the other; one for the
/// replicas of a stage. Messages go through the host where there is none: with a worker on a CPU,
/// two workers on one device (which NCCL does not connect), no NCCL.
class DeviceGroups {
 public:
  using Find = std::function<const NcclApi*()>;
  DeviceGroups(WireTeam& team, Find find) : team_(team), find_(std::move(find)) {}

  /// Collective over the team; `own`: the device of this process's worker. Makes what the program
  /// needs and is not there yet.
  void prepare(const Program& program, at::Device own);
  /// From one worker to another: members 0 and 1. Null: through the host.
  DeviceGroup* between(int from, int to) const;
  /// Of a stage's replicas: members in their order. Null: through the host.
  DeviceGroup* among(const std::vector<int>& replicas) const;
  /// As DeviceGroup::failure(), of any. Any thread.
  std::string failure() const;

 private:
  using Known = std::map<std::vector<int>, std::unique_ptr<DeviceGroup>>;
  void join(Known& known, const std::vector<int>& members, at::Device own);
  void meet(DeviceGroup& group, int size, int place);
  NcclId agreed_id(const NcclApi& api, const std::vector<int>& members);

  WireTeam& team_;
  Find find_;
  mutable std::mutex mutex_;  ///< guards what is known; not held while groups are made
  Known links_, replicas_;    ///< by the members' workers
};

}  // namespace pipewright
