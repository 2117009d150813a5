// SPDX-License-Identifier: Apache-2.0
#include "core/processes/wire_team.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/processes/channels.h"
#include "core/processes/wire_transport.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

void send_bytes(WireTeam& team, int peer, const void* data, std::size_t bytes) {
  const at::Tensor buffer = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
  std::memcpy(buffer.mutable_data_ptr(), data, bytes);
  team.wait_until_gone(team.send(peer, kCollectiveChannel, buffer));
}

void receive_bytes(WireTeam& team, int peer, void* data, std::size_t bytes) {
  const at::Tensor buffer = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
  const std::size_t came = team.wait(team.receive(peer, kCollectiveChannel, buffer));
  PIPEWRIGHT_CHECK(came == bytes, came, " bytes instead of ", bytes, " from process ", peer);
  std::memcpy(data, buffer.const_data_ptr(), bytes);
}

}  // namespace

WireTeam::WireTeam(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience,
                   DeviceGroups::Find nccl)
    : rank_(wire->rank()),
      size_(wire->size()),
      device_groups_(rank_, size_, *this, std::move(nccl)),
      farewell_(keeper_),
      keeper_(std::move(wire), stop, patience) {
  keeper_.start({.device_failure = [this] { return device_groups_.failure(); },
                 .after_round = [this] { farewell_.end_if_stuck(); }});
}

// ---- mail ------------------------------------------------------------------------------------

Mail::Ticket WireTeam::send(int peer, int channel, at::Tensor tensor) {
  const Lock lock(keeper_.mutex());
  keeper_.mail().advance_sends();
  return keeper_.mail().send(peer, channel, std::move(tensor));
}

void WireTeam::decline(int peer, int channel, std::size_t bytes) {
  const Lock lock(keeper_.mutex());
  keeper_.mail().decline(peer, channel, bytes);
}

void WireTeam::wait_until_gone(Mail::Ticket sent) {
  keeper_.wait_for([&]()
                       PIPEWRIGHT_REQUIRES(keeper_.mutex()) { return keeper_.mail().gone(sent); });
}

Mail::Ticket WireTeam::receive(int peer, int channel, at::Tensor tensor) {
  const Lock lock(keeper_.mutex());
  return keeper_.mail().receive(peer, channel, std::move(tensor));
}

std::size_t WireTeam::wait(Mail::Ticket received) {
  std::optional<std::size_t> bytes;
  keeper_.wait_for([&]() PIPEWRIGHT_REQUIRES(keeper_.mutex()) {
    bytes = keeper_.mail().come(received);
    return bytes.has_value();
  });
  return *bytes;
}

// ---- collectives: all values pass through process 0, so they are for few and small ones -------

void WireTeam::barrier() {
  double nothing = 0;
  sum({&nothing, 1});
}

void WireTeam::sum(std::span<double> values) {
  if (rank_ != 0) {
    send_bytes(*this, 0, values.data(), values.size_bytes());
    receive_bytes(*this, 0, values.data(), values.size_bytes());
    return;
  }
  std::vector<double> others(values.size());
  for (int peer = 1; peer < size_; ++peer) {
    receive_bytes(*this, peer, others.data(), values.size_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += others[i];
  }
  for (int peer = 1; peer < size_; ++peer)
    send_bytes(*this, peer, values.data(), values.size_bytes());
}

std::vector<std::string> WireTeam::gather(std::string bytes) {
  std::uint64_t length = bytes.size();
  if (rank_ != 0) {
    send_bytes(*this, 0, &length, sizeof length);
    if (length > 0) send_bytes(*this, 0, bytes.data(), length);
    return {};
  }
  std::vector<std::string> all{std::move(bytes)};
  for (int peer = 1; peer < size_; ++peer) {
    receive_bytes(*this, peer, &length, sizeof length);
    std::string& theirs = all.emplace_back(length, '\0');
    if (length > 0) receive_bytes(*this, peer, theirs.data(), length);
  }
  return all;
}

// ---- devices ---------------------------------------------------------------------------------

std::unique_ptr<Transport> WireTeam::transport(const Program& program, at::Device own,
                                               const Program* within) {
  if (within != nullptr)
    return wire_transport(program, *this, nullptr, static_cast<int>(within->links.size()));
  try {
    device_groups_.prepare(program, own);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Worker || !error.where().empty()) throw;
    throw Error(error.kind(), error.message(), concat("worker ", rank_));
  }
  return wire_transport(program, *this, &device_groups_);
}

void WireTeam::wait_for_device(const std::function<bool()>& done) {
  if (!done()) keeper_.wait_for(done, keeper_.patience().computing);
}

void WireTeam::share(const std::vector<int>& members, std::span<std::byte> bytes) {
  const at::Tensor buffer = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  if (rank_ == members[0]) {
    std::memcpy(buffer.mutable_data_ptr(), bytes.data(), bytes.size());
    for (std::size_t i = 1; i < members.size(); ++i) send(members[i], kJoinChannel, buffer);
  } else {
    wait(receive(members[0], kJoinChannel, buffer));
    std::memcpy(bytes.data(), buffer.const_data_ptr(), bytes.size());
  }
}

// ---- life and end ----------------------------------------------------------------------------

void WireTeam::set_activity(std::function<std::string()> activity) {
  keeper_.set_activity(std::move(activity));
}

void WireTeam::set_emergency(std::function<void(const Error&, bool speaks)> report) {
  farewell_.set_emergency(std::move(report));
}

void WireTeam::meet() {
  keeper_.wait_for([&]() PIPEWRIGHT_REQUIRES(keeper_.mutex()) { return keeper_.peers().known(); });
}

/// The others may still be in the barrier when this process has passed it. So it goes on listening
/// and looking for deaths, and reports one if it is the speaker.
void WireTeam::finish() {
  barrier();
  keeper_.stop_after(FinishedNote{});
  std::optional<Keeper::TimePoint> lost_at;
  while (!closed(lost_at)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Whether the wire is closed. `lost_at`: since when some process has been dead or silent.
bool WireTeam::closed(std::optional<Keeper::TimePoint>& lost_at) {
  const Lock lock(keeper_.mutex());
  Peers& peers = keeper_.peers();
  bool over = false;
  peers.try_to([&]() PIPEWRIGHT_REQUIRES(keeper_.mutex()) {
    peers.listen();
    over = !peers.failure() && keeper_.wire().closed();
  });
  if (over) return true;
  const auto time = keeper_.now();
  std::optional<Error> lost = peers.death();
  if (!lost) lost = peers.silence(time);
  if (!lost) {
    lost_at.reset();
  } else if (!lost_at) {
    lost_at = time;
  } else if (!peers.failure() && time - *lost_at > keeper_.patience().last_look) {
    // One that has ended regularly would have left what closes the wire.
    peers.try_to([&] { peers.fail(*lost); });
  }
  if (peers.failure()) throw peers.failure()->error;
  return false;
}

}  // namespace pipewright
