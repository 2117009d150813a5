/// A team of processes over a wire. A thread of its own, the keeper, sends heartbeats, hears when
/// another process fails, dies or falls silent, and ends the process when its work does not react;
/// so every wait ends, whatever happens elsewhere.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "core/runtime/device_group.h"
#include "core/runtime/team.h"
#include "core/runtime/wire.h"

namespace pipewright {

/// How patient a team is. All but the last together end a run within 10 s of a failure.
struct TeamPatience {
  std::chrono::milliseconds heartbeat{500};
  std::chrono::milliseconds silence{5000};      ///< of a process before it counts as stopped
  std::chrono::milliseconds reaction{3000};     ///< of our own work to a failure elsewhere …
  std::chrono::milliseconds after_signal{500};  ///< … or to a signal: MPI kills a second after it
  std::chrono::milliseconds last_look{250};     ///< for a death behind a signal
  /// With everybody waiting for somebody; longer than any message takes on any network.
  std::chrono::milliseconds standstill{60000};
  /// … and what is added to it where a device may be computing, as long as any mini-batch takes.
  std::chrono::milliseconds computing{540000};
};

/// The working thread and the keeper may call it at the same time; two working threads may not.
class WireTeam final : public Team {
 public:
  /// `stop` (may be null): a signal came.
  /// `nccl`: where devices' messages find it.
  WireTeam(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience = {},
           DeviceGroups::Find nccl = find_nccl);
  ~WireTeam() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override;
  void sum(std::span<double> values) override;
  std::vector<std::string> gather(std::string bytes) override;
  std::unique_ptr<Transport> transport(const Program& program, at::Device own) override;
  void wait_for_device(const std::function<bool()>& done) override;
  void set_activity(std::function<std::string()> activity) override;
  Error settle(const Error& error) override;
  bool speaks() override;
  void set_emergency(std::function<void(const Error&, bool speaks)> report) override;

  /// Collective: the run is over and well.
  void part();
  /// The run is over and not well: ends all processes. Others than the speaker wait for that.
  [[noreturn]] void leave(int exit_code);

  /// Sends a contiguous CPU tensor, which is kept until it has gone. Returns a number for gone().
  std::int64_t send(int peer, int channel, at::Tensor tensor);
  bool gone(std::int64_t sent);
  void wait_until_gone(std::int64_t sent);
  /// Asks for a message into a contiguous CPU tensor, which is kept until wait().
  Wire::Ticket receive(int peer, int channel, at::Tensor tensor);
  /// Bytes that came.
  std::size_t wait(Wire::Ticket ticket);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    std::string host;
    int process = 0;
    std::string activity;
    std::chrono::milliseconds waited{0};  ///< for one message, as it said last
    Clock::time_point heard;
    bool left = false;  ///< said so
  };
  struct Failure {
    Error error;
    int speaker = 0;
    Clock::time_point since;
  };
  struct Sent {
    Wire::Ticket ticket;
    at::Tensor tensor;
  };

  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  std::chrono::milliseconds waited() const;
  void keep();
  void listen();
  void understand(const Wire::Note& note);
  void beat();
  void look_for_silence();
  void look_for_standstill();
  void look_at_devices();
  std::string place() const;
  void fail(const Error& error);
  void tell_all(const std::string& note);
  std::optional<Error> death() const;
  bool dead(const Peer& peer) const;
  int first_living() const;
  Error lost(int peer, const std::string& what) const;
  bool others_left() const;
  void release_sent();
  void end_if_stuck();
  template <class Condition>
  void wait_for(const Condition& condition, std::chrono::milliseconds allowance = {});
  void exchange_bytes(int peer, void* data, std::size_t bytes, bool out);

  const TeamPatience patience_;
  const std::atomic<bool>* const stop_;
  int rank_, size_;
  DeviceGroups device_groups_;

  std::mutex mutex_;  ///< guards everything below, the wire too
  std::unique_ptr<Wire> wire_;
  std::vector<Peer> peers_;
  std::optional<Failure> failure_;
  std::optional<Clock::time_point> signal_seen_, waiting_since_;
  std::function<std::string()> activity_;
  std::unordered_map<std::int64_t, Sent> sent_;
  std::int64_t sent_count_ = 0;
  std::unordered_map<Wire::Ticket, at::Tensor> receiving_;
  Clock::time_point last_beat_, last_round_;

  std::mutex emergency_mutex_;  ///< held while the report is told; never inside mutex_
  std::function<void(const Error&, bool speaks)> emergency_;
  enum class Reporter { Nobody, Work, Keeper };
  std::atomic<Reporter> reporter_ = Reporter::Nobody;
  std::atomic<bool> leaving_ = false;
  bool keeping_ = true;
  std::condition_variable woken_;
  std::thread keeper_;
};

}  // namespace pipewright
