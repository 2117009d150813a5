// SPDX-License-Identifier: Apache-2.0
/// Groups of processes whose devices exchange memory over NCCL, without passing through the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/runtime/devices/nccl.h"
#include "core/runtime/program.h"

namespace pipewright {

/// An NCCL communicator. Members are numbered by their rank in it.
class DeviceGroup {
 public:
  DeviceGroup(const NcclApi& api, NcclCommunicator communicator, at::Device device);
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  at::Device device() const { return device_; }
  /// A member and the contiguous memory on this process's device that goes to it or comes from it.
  using Transfer = std::pair<int, at::Tensor>;
  /// Queues all transfers as one NCCL group on the device's current stream; they complete once the
  /// other members have queued their halves. Both sides of a pair list their transfers in the same
  /// order. Throws Error{Worker}.
  void exchange(const std::vector<Transfer>& out, const std::vector<Transfer>& in);
  /// NCCL's asynchronous error, "" if there is none. Thread-safe.
  std::string failure() const;

 private:
  const NcclApi& api_;
  NcclCommunicator communicator_;
  at::Device device_;
};

/// The groups of one process, cached from program to program: one for each ordered pair of workers
/// that exchange messages, so that neither direction waits for the other, and one for the replicas
/// of each stage. Messages pass through the host where there is no group: if a worker is on a CPU,
/// if two workers share a device (which NCCL does not connect), or without NCCL.
class DeviceGroups {
 public:
  using Find = std::function<const NcclApi*()>;
  /// The collective calls by which processes form groups. All throw the team's error.
  class Meeting {
   public:
    /// Collective over the team: every process gets the sums.
    virtual void sum(std::span<double> values) = 0;
    /// Collective over the members: every member gets the bytes of the first.
    virtual void share(const std::vector<int>& members, std::span<std::byte> bytes) = 0;
    /// Polls `done` until it returns true.
    virtual void wait_for_device(const std::function<bool()>& done) = 0;

   protected:
    ~Meeting() = default;
  };
  /// For process `rank` of `size`; `find` returns the NCCL to use.
  DeviceGroups(int rank, int size, Meeting& meeting, Find find)
      : rank_(rank), size_(size), meeting_(meeting), find_(std::move(find)) {}

  /// Collective over the team: creates the groups that the program needs and the cache lacks. `own`
  /// is the device of this process's worker.
  void prepare(const Program& program, at::Device own);
  /// The group for messages from one worker (member 0) to another (member 1); null: use the host.
  DeviceGroup* between(int from, int to) const;
  /// The group of a stage's replicas, members in the order of replicas; null: use the host.
  DeviceGroup* among(const std::vector<int>& replicas) const;
  /// The first DeviceGroup::failure() of any group. Thread-safe.
  std::string failure() const;

 private:
  using Known = std::map<std::vector<int>, std::unique_ptr<DeviceGroup>>;
  /// Collective over the members: a new group of which this process is one.
  std::unique_ptr<DeviceGroup> connected(const std::vector<int>& members, at::Device own);
  void connect(DeviceGroup& group, int size, int member);
  NcclId agreed_id(const NcclApi& api, const std::vector<int>& members);

  const int rank_, size_;
  Meeting& meeting_;
  Find find_;
  mutable Mutex mutex_;  ///< not held while a group is created
  // keyed by the members' workers
  Known links_ PIPEWRIGHT_GUARDED_BY(mutex_);
  Known replicas_ PIPEWRIGHT_GUARDED_BY(mutex_);
};

}  // namespace pipewright
