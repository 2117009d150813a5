#include "core/runtime/device_group.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <set>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/runtime/channels.h"
#include "core/runtime/device_stream.h"
#include "core/runtime/wire_team.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

using Members = std::vector<int>;

/// In an order that is everybody's own part of one order of all, so that nobody waits for a group
/// whose other members wait for theirs.
struct Wanted {
  std::set<Members> links, replicas;
};
Wanted wanted_by(const Program& program) {
  Wanted wanted;
  const PipelineShape& shape = program.schedule.shape;
  for (std::size_t worker = 0; worker < program.workers.size(); ++worker)
    for (const Instruction& instruction : program.workers[worker]) {
      if (instruction.send_link >= 0)
        wanted.links.insert({static_cast<int>(worker), instruction.send_to});
      if (instruction.action.kind == ActionKind::Reduce)
        wanted.replicas.insert(shape.workers_of(instruction.action.stage));
    }
  return wanted;
}

at::Tensor bytes_of(void* memory, std::size_t size) {
  return at::from_blob(memory, {static_cast<std::int64_t>(size)}, at::TensorOptions(at::kByte));
}

}  // namespace

// ---- one group -------------------------------------------------------------------------------

DeviceGroup::DeviceGroup(const NcclApi& api, NcclCommunicator communicator, at::Device device)
    : api_(api), communicator_(communicator), device_(device) {}

DeviceGroup::~DeviceGroup() {
  api_.comm_destroy(communicator_);
}

void DeviceGroup::expect(int code, const char* what) const {
  if (code != 0) throw Error(ErrorKind::Worker, concat("NCCL ", what, ": ", api_.error_text(code)));
}

void DeviceGroup::exchange(const std::vector<Transfer>& out, const std::vector<Transfer>& in) {
  const c10::DeviceGuard guard(device_);
  void* const stream = current_stream(device_).native_handle();
  expect(api_.group_start(), "cannot start");
  for (const auto& [member, tensor] : out)
    expect(api_.send(tensor.const_data_ptr(), tensor.nbytes(), NcclApi::kByte, member,
                     communicator_, stream),
           "cannot send");
  for (const auto& [member, tensor] : in)
    expect(api_.receive(tensor.mutable_data_ptr(), tensor.nbytes(), NcclApi::kByte, member,
                        communicator_, stream),
           "cannot receive");
  expect(api_.group_end(), "cannot exchange");
}

std::string DeviceGroup::failure() const {
  int error = 0;
  const int code = api_.comm_get_async_error(communicator_, &error);
  if (code == 0 && error == 0) return {};
  return api_.error_text(code != 0 ? code : error);
}

// ---- all of a process ------------------------------------------------------------------------

void DeviceGroups::prepare(const Program& program, at::Device own) {
  std::vector<double> ready(as_size(team_.size()), 0);
  if (!own.is_cpu() && find_() != nullptr) ready[as_size(team_.rank())] = 1;
  team_.sum(ready);
  const auto concerns_us = [&](const Members& members) {
    return std::ranges::find(members, team_.rank()) != members.end() &&
           std::ranges::all_of(members, [&](int member) { return ready[as_size(member)] > 0; });
  };
  const Wanted wanted = wanted_by(program);
  for (const Members& members : wanted.links)
    if (concerns_us(members)) join(links_, members, own);
  for (const Members& members : wanted.replicas)
    if (concerns_us(members)) join(replicas_, members, own);
}

void DeviceGroups::join(Known& known, const Members& members, at::Device own) {
  if (known.contains(members)) return;
  const NcclApi& api = *find_();
  const NcclId id = agreed_id(api, members);
  const auto place = std::ranges::find(members, team_.rank()) - members.begin();
  NcclCommunicator communicator = nullptr;
  const c10::DeviceGuard guard(own);
  const int code = api.comm_init_rank(&communicator, static_cast<int>(members.size()), id,
                                      static_cast<int>(place));
  if (code != 0 && code != NcclApi::kInvalidUsage)
    throw Error(ErrorKind::Worker, concat("NCCL cannot connect: ", api.error_text(code)));
  std::unique_ptr<DeviceGroup> group;
  if (code == 0) group = std::make_unique<DeviceGroup>(api, communicator, own);
  if (!all_agree(code == 0, members)) group.reset();
  const std::lock_guard lock(mutex_);
  known.emplace(members, std::move(group));
}

/// Made by the first member.
NcclId DeviceGroups::agreed_id(const NcclApi& api, const Members& members) {
  NcclId id;
  const at::Tensor bytes = bytes_of(id.bytes.data(), id.bytes.size());
  if (team_.rank() != members[0]) {
    team_.wait(team_.receive(members[0], kJoinChannel, bytes));
    return id;
  }
  const int code = api.get_unique_id(&id);
  if (code != 0)
    throw Error(ErrorKind::Worker, concat("NCCL cannot start: ", api.error_text(code)));
  for (std::size_t i = 1; i < members.size(); ++i)
    team_.send(members[i], kJoinChannel, bytes.clone());
  return id;
}

bool DeviceGroups::all_agree(bool joined, const Members& members) {
  std::int64_t others = 0;
  for (const int member : members)
    if (member != team_.rank())
      team_.send(member, kJoinChannel, at::full({1}, joined ? 1 : 0, at::kByte));
  for (const int member : members) {
    if (member == team_.rank()) continue;
    const at::Tensor theirs = at::zeros({1}, at::kByte);
    team_.wait(team_.receive(member, kJoinChannel, theirs));
    others += theirs.item<std::int64_t>();
  }
  return joined && others + 1 == std::ssize(members);
}

DeviceGroup* DeviceGroups::between(int from, int to) const {
  const auto found = links_.find({from, to});
  return found == links_.end() ? nullptr : found->second.get();
}

DeviceGroup* DeviceGroups::among(const Members& replicas) const {
  const auto found = replicas_.find(replicas);
  return found == replicas_.end() ? nullptr : found->second.get();
}

std::string DeviceGroups::failure() const {
  const std::lock_guard lock(mutex_);
  for (const Known* known : {&links_, &replicas_})
    for (const auto& [members, group] : *known)
      if (group)
        if (const std::string failure = group->failure(); !failure.empty()) return failure;
  return {};
}

}  // namespace pipewright
