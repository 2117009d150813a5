/// A team of processes over a wire. A thread of its own, the keeper, sends heartbeats, hears when
/// another process fails, dies or falls silent, and ends the process when its work does not react;
/// so every wait ends, whatever happens elsewhere. An error of the keeper's own, of the wire or of
/// a damaged note, is a failure of this process's worker like any other.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/runtime/devices/device_group.h"
#include "core/runtime/processes/mail.h"
#include "core/runtime/processes/process_identity.h"
#include "core/runtime/processes/team.h"
#include "core/runtime/processes/team_notes.h"
#include "core/runtime/processes/wire.h"

namespace pipewright {

/// How patient a team is. All but the deadlock timeout and `computing` together end a run within
/// 10 s of a failure.
struct TeamPatience {
  std::chrono::milliseconds heartbeat{500};
  std::chrono::milliseconds death{100};         ///< between looks whether a process has died
  std::chrono::milliseconds silence{5000};      ///< of a process before it counts as stopped
  std::chrono::milliseconds reaction{3000};     ///< of our own work to a failure elsewhere …
  std::chrono::milliseconds after_signal{500};  ///< … or to a signal: MPI kills a second after it
  std::chrono::milliseconds last_look{250};     ///< for a death behind a signal
  /// Deadlock timeout (`pipeline.timeout`): all processes wait, and no piece of any message has
  /// gone or come for so long.
  std::chrono::milliseconds standstill{60000};
  /// Added to it while a device may be computing: as long as any mini-batch takes.
  std::chrono::milliseconds computing{540000};
  /// The clock that all of these are measured by.
  std::chrono::steady_clock::time_point (*now)() = &std::chrono::steady_clock::now;
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

  /// As Mail does it, driven by the keeper too.
  Mail::Ticket send(int peer, int channel, at::Tensor tensor);
  void decline(int peer, int channel, std::size_t bytes);
  void wait_until_gone(Mail::Ticket sent);
  Mail::Ticket receive(int peer, int channel, at::Tensor tensor);
  /// Bytes that came.
  std::size_t wait(Mail::Ticket received);

 private:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  struct Peer {
    ProcessIdentity identity;
    std::string activity;
    std::chrono::milliseconds still{0};  ///< as its last heartbeat said
    TimePoint heard;                     ///< a note, or a piece of a message
    std::int64_t come = 0;               ///< pieces from it
    TimePoint piece_came;
    bool amid = false;               ///< a message is coming from it, and a part has come …
    Clock::duration longest_gap{0};  ///< … between whose pieces there was so much time at most
    bool left = false;               ///< said so
  };
  struct Failure {
    Error error;
    int speaker = 0;
    TimePoint since;
  };

  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  TimePoint now() const { return patience_.now(); }
  Peer& peer_of(int process) { return peers_[static_cast<std::size_t>(process)]; }
  const Peer& peer_of(int process) const { return peers_[static_cast<std::size_t>(process)]; }

  // the keeper
  void keep();
  void look_around();
  std::chrono::microseconds round() const;
  void listen();
  void understand(const Wire::Note& note);
  void drive_mail();
  void beat();
  void look_for_deaths();
  void look_for_silence();
  void look_for_standstill();
  void look_at_devices();
  void end_if_stuck();

  // what it knows
  std::chrono::milliseconds still() const;
  std::string place() const;
  Error lost(int peer, const std::string& what) const;
  bool dead(const Peer& peer) const;
  Clock::duration silence_of(const Peer& peer) const;
  std::optional<Error> death() const;
  int first_living() const;
  bool gone_or_silent(const Peer& peer) const;
  bool others_left() const;

  // failures
  void fail(const Error& error);
  void tell_all(const TeamNote& note);
  template <class Act>
  void try_to(const Act& act);

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
  std::optional<TimePoint> signal_seen_, waiting_since_;
  std::function<std::string()> activity_;
  std::string last_activity_;  ///< as the last heartbeat said it
  Mail mail_;
  std::int64_t moved_ = 0;  ///< pieces, when the keeper looked last
  TimePoint last_beat_, last_round_, last_look_, moved_at_;

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
