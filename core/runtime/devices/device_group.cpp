// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/device_group.h"

#include <c10/core/DeviceGuard.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/devices/device_stream.h"
#include "core/system/host_name.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using Members = std::vector<int>;

/// The members of each group that a program needs. Every process creates its groups in the order of
/// these sets, so no two wait for each other in different groups.
struct Wanted {
  std::set<Members> links, replicas;
};
Wanted wanted_by(const Program& program) {
  Wanted wanted;
  const PipelineShape& shape = program.schedule.shape;
  for (std::size_t worker = 0; worker < program.workers.size(); ++worker)
    for (const Instruction& instruction : program.workers[worker]) {
      for (const Port& port : sends_of(instruction))
        if (port.crosses) wanted.links.insert({static_cast<int>(worker), port.to});
      if (instruction.action.kind == ActionKind::Reduce)
        wanted.replicas.insert(shape.workers_of(instruction.action.stage));
    }
  return wanted;
}

/// An identifier of the device among all machines (52 bits of a hash, exact in a double); 0 if the
/// device cannot join a group.
double device_number(const NcclApi* nccl, at::Device device) {
  if (device.is_cpu() || nccl == nullptr) return 0;
  char bus[64] = {};
  if (nccl->bus_id(bus, sizeof bus, device.index()) != 0) return 0;
  const std::size_t hash =
      std::hash<std::string>()(concat(host_name(), " ", std::string_view(bus)));
  return static_cast<double>(hash >> 12 | 1);
}

void expect(const NcclApi& nccl, int code, const char* what) {
  if (code != 0) throw Error(ErrorKind::Worker, concat("NCCL ", what, ": ", nccl.error_text(code)));
}

}  // namespace

// ---- one group -------------------------------------------------------------------------------

DeviceGroup::DeviceGroup(const NcclApi& api, NcclCommunicator communicator, at::Device device)
    : api_(api), communicator_(communicator), device_(device) {}

DeviceGroup::~DeviceGroup() {
  api_.comm_destroy(communicator_);
}

void DeviceGroup::exchange(const std::vector<Transfer>& out, const std::vector<Transfer>& in) {
  const c10::DeviceGuard guard(device_);
  void* const stream = current_stream(device_).native_handle();
  expect(api_, api_.group_start(), "cannot start");
  int failed = 0;  // an NCCL group must be ended after a failure, too
  for (const auto& [member, tensor] : out)
    if (failed == 0)
      failed = api_.send(tensor.const_data_ptr(), tensor.nbytes(), NcclApi::kByte, member,
                         communicator_, stream);
  for (const auto& [member, tensor] : in)
    if (failed == 0)
      failed = api_.receive(tensor.mutable_data_ptr(), tensor.nbytes(), NcclApi::kByte, member,
                            communicator_, stream);
  const int ended = api_.group_end();
  expect(api_, failed != 0 ? failed : ended, "cannot exchange");
}

std::string DeviceGroup::failure() const {
  int error = 0;
  const int code = api_.comm_get_async_error(communicator_, &error);
  if (code == 0 && error == 0) return {};
  return api_.error_text(code != 0 ? code : error);
}

// ---- all groups of a process -----------------------------------------------------------------

void DeviceGroups::prepare(const Program& program, at::Device own) {
  std::vector<double> devices(as_size(size_), 0);
  devices[as_size(rank_)] = device_number(own.is_cpu() ? nullptr : find_(), own);
  meeting_.sum(devices);
  if (std::ranges::all_of(devices, [](double number) { return number == 0; })) return;
  const auto concerns_us = [&](const Members& members) {
    std::set<double> different;
    for (const int member : members) different.insert(devices[as_size(member)]);
    return std::ranges::find(members, rank_) != members.end() &&
           different.size() == members.size() && !different.contains(0);
  };
  const Wanted wanted = wanted_by(program);
  for (const Members& members : wanted.links)
    if (concerns_us(members) && between(members[0], members[1]) == nullptr) {
      auto group = connected(members, own);
      const Lock lock(mutex_);
      links_.emplace(members, std::move(group));
    }
  for (const Members& members : wanted.replicas)
    if (concerns_us(members) && among(members) == nullptr) {
      auto group = connected(members, own);
      const Lock lock(mutex_);
      replicas_.emplace(members, std::move(group));
    }
}

std::unique_ptr<DeviceGroup> DeviceGroups::connected(const Members& members, at::Device own) {
  const NcclApi& api = *find_();
  const NcclId id = agreed_id(api, members);
  const auto member = static_cast<int>(std::ranges::find(members, rank_) - members.begin());
  const auto size = static_cast<int>(members.size());
  NcclCommunicator communicator = nullptr;
  const c10::DeviceGuard guard(own);
  expect(api, api.comm_init_rank(&communicator, size, id, member), "cannot connect");
  auto group = std::make_unique<DeviceGroup>(api, communicator, own);
  connect(*group, size, member);
  return group;
}

/// Lets the members connect by a first exchange, for which both must wait. Here all processes come
/// in one order; at the first message of a schedule the other side might never come.
void DeviceGroups::connect(DeviceGroup& group, int size, int member) {
  std::vector<DeviceGroup::Transfer> out, in;
  const auto byte = [&] {
    return at::zeros({1}, at::TensorOptions(at::kByte).device(group.device()));
  };
  for (int other = 0; other < size; ++other) {
    if (other == member) continue;
    out.emplace_back(other, byte());
    in.emplace_back(other, byte());
  }
  group.exchange(out, in);
  const c10::Event met = recorded_on(current_stream(group.device()));
  meeting_.wait_for_device([&] { return met.query(); });
}

/// The communicator's id, created by the first member and shared with the others.
NcclId DeviceGroups::agreed_id(const NcclApi& api, const Members& members) {
  NcclId id;
  if (rank_ == members[0]) expect(api, api.get_unique_id(&id), "cannot start");
  meeting_.share(members, std::as_writable_bytes(std::span(id.bytes)));
  return id;
}

DeviceGroup* DeviceGroups::between(int from, int to) const {
  const Lock lock(mutex_);
  const auto found = links_.find({from, to});
  return found == links_.end() ? nullptr : found->second.get();
}

DeviceGroup* DeviceGroups::among(const Members& replicas) const {
  const Lock lock(mutex_);
  const auto found = replicas_.find(replicas);
  return found == replicas_.end() ? nullptr : found->second.get();
}

std::string DeviceGroups::failure() const {
  const Lock lock(mutex_);
  for (const Known* known : {&links_, &replicas_})
    for (const auto& [members, group] : *known)
      if (const std::string failure = group->failure(); !failure.empty()) return failure;
  return {};
}

}  // namespace pipewright
