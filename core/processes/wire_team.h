// SPDX-License-Identifier: Apache-2.0
/// A team of processes over a wire. It combines the mail, the collectives, the keeper that keeps
/// the team alive, and the farewell after a failure.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/processes/farewell.h"
#include "core/processes/keeper.h"
#include "core/processes/mail.h"
#include "core/processes/wire.h"
#include "core/runtime/devices/device_group.h"
#include "core/runtime/team.h"

namespace pipewright {

/// An error in the keeper's thread (from the wire, or a damaged note) counts as a failure of this
/// process's worker. Only one working thread at a time may call it.
class WireTeam final : public Team, private DeviceGroups::Meeting {
 public:
  /// `stop` (may be null) becomes true after a signal. `nccl` returns the NCCL for device groups.
  WireTeam(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience = {},
           DeviceGroups::Find nccl = find_nccl);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  void sum(std::span<double> values) override;
  std::vector<std::string> gather(std::string bytes) override;
  std::unique_ptr<Transport> transport(const Program& program, at::Device own,
                                       const Program* within) override;
  void wait_for_device(const std::function<bool()>& done) override;
  void set_activity(std::function<std::string()> activity) override;
  Error agree_on(const Error& error) override { return farewell_.agree_on(error); }
  bool reports_to_user() override { return farewell_.reports_to_user(); }
  void set_emergency(std::function<void(const Error&, bool speaks)> report) override;

  /// Collective: waits until every process has said who it is, so that the others can name it if it
  /// dies. Throws as the collective functions do.
  void meet();
  /// Collective: ends the team after a successful run. Throws as the collective functions do: also
  /// where a process dies that has come here before the others.
  void finish();
  /// Ends all processes after a failure. Processes other than the speaker wait for it to do so.
  [[noreturn]] void end_all(int exit_code) { farewell_.end_all(exit_code); }

  /// The functions of Mail under the keeper's mutex; the keeper drives the messages meanwhile.
  Mail::Ticket send(int peer, int channel, at::Tensor tensor);
  void decline(int peer, int channel, std::size_t bytes);
  /// Waits until a sent message has left.
  void wait_until_gone(Mail::Ticket sent);
  Mail::Ticket receive(int peer, int channel, at::Tensor tensor);
  /// Waits for a message and returns its size in bytes.
  std::size_t wait(Mail::Ticket received);

 private:
  void share(const std::vector<int>& members, std::span<std::byte> bytes) override;
  bool closed(std::optional<Keeper::TimePoint>& lost_at);

  const int rank_, size_;
  DeviceGroups device_groups_;
  Farewell farewell_;
  Keeper keeper_;  ///< last member: its thread ends before the others are destroyed
};

}  // namespace pipewright
