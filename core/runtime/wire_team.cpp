#include "core/runtime/wire_team.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/base/foreign_error.h"
#include "core/runtime/channels.h"
#include "core/runtime/wire_transport.h"
#include "core/stage/torch.h"

namespace pipewright {
namespace {

using namespace std::chrono_literals;

/// How often the keeper drives messages that are on their way, and how often it looks otherwise.
constexpr auto kBusyRound = 2ms, kIdleRound = 20ms;
/// A gap in the keeper's own rounds that means this very process was stopped for a while.
constexpr auto kOwnGap = 1s;
/// How long at most the speaker lets others finish what they write, and they wait for the end.
constexpr std::chrono::milliseconds kFarewell = 1s, kOthersWait = 4s;

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// No such process, or only its exit code is left of it.
bool process_is_gone(int process) {
  std::ifstream stat(concat("/proc/", process, "/stat"));
  std::string line;
  if (!std::getline(stat, line)) return ::kill(process, 0) != 0;
  const std::size_t end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() &&
         (line[end + 2] == 'Z' || line[end + 2] == 'X');
}

/// Waits in ever longer steps: a message is mostly there soon, and the core may be wanted.
class Patience {
 public:
  void pause() {
    if (++rounds_ < 200) return;
    if (rounds_ < 2000)
      ::sched_yield();
    else
      std::this_thread::sleep_for(50us);
  }

 private:
  int rounds_ = 0;
};

}  // namespace

WireTeam::WireTeam(std::unique_ptr<Wire> wire, const std::atomic<bool>* stop, TeamPatience patience,
                   DeviceGroups::Find nccl)
    : patience_(patience),
      stop_(stop),
      rank_(wire->rank()),
      size_(wire->size()),
      device_groups_(*this, std::move(nccl)),
      wire_(std::move(wire)),
      peers_(static_cast<std::size_t>(size_)) {
  last_round_ = Clock::now();
  for (Peer& peer : peers_) peer.heard = last_round_;
  tell_all(concat("H", ::getpid(), " ", host_name()));
  try {
    keeper_ = std::thread([this] { keep(); });
  } catch (const std::exception& error) {
    throw thread_error("the team's keeper", error, ErrorKind::Worker);
  }
}

WireTeam::~WireTeam() {
  {
    const std::lock_guard lock(mutex_);
    keeping_ = false;
  }
  woken_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

// ---- waiting ---------------------------------------------------------------------------------

template <class Condition>
void WireTeam::wait_for(const Condition& condition, std::chrono::milliseconds allowance) {
  for (Patience patience;; patience.pause()) {
    {
      const std::lock_guard lock(mutex_);
      const bool over = condition();
      if (over || failure_) waiting_since_.reset();
      if (over) return;
      if (failure_) throw failure_->error;
      if (!waiting_since_) waiting_since_ = Clock::now() + allowance;
    }
    if (stopped()) throw Error(ErrorKind::Interrupted, "stopped while waiting for another worker");
  }
}

std::int64_t WireTeam::send(int peer, int channel, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  release_sent();
  const Wire::Ticket ticket = wire_->send(peer, channel, tensor.const_data_ptr(), tensor.nbytes());
  sent_.emplace(++sent_count_, Sent{ticket, std::move(tensor)});
  return sent_count_;
}

void WireTeam::release_sent() {
  std::erase_if(sent_,
                [this](const auto& sent) { return wire_->done(sent.second.ticket).has_value(); });
}

bool WireTeam::gone(std::int64_t sent) {
  const std::lock_guard lock(mutex_);
  release_sent();
  return !sent_.contains(sent);
}

void WireTeam::wait_until_gone(std::int64_t sent) {
  wait_for([&] {
    release_sent();
    return !sent_.contains(sent);
  });
}

Wire::Ticket WireTeam::receive(int peer, int channel, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  const Wire::Ticket ticket =
      wire_->receive(peer, channel, tensor.mutable_data_ptr(), tensor.nbytes());
  receiving_.emplace(ticket, std::move(tensor));
  return ticket;
}

std::size_t WireTeam::wait(Wire::Ticket ticket) {
  std::size_t bytes = 0;
  wait_for([&] {
    const auto came = wire_->done(ticket);
    if (!came) return false;
    bytes = *came;
    receiving_.erase(ticket);
    return true;
  });
  return bytes;
}

void WireTeam::wait_for_device(const std::function<bool()>& done) {
  if (!done()) wait_for(done, patience_.computing);
}

// ---- collectives: few and small, by way of process 0 -----------------------------------------

void WireTeam::exchange_bytes(int peer, void* data, std::size_t bytes, bool out) {
  const at::Tensor buffer = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
  if (out) {
    std::memcpy(buffer.mutable_data_ptr(), data, bytes);
    wait_until_gone(send(peer, kCollectiveChannel, buffer));
    return;
  }
  const std::size_t came = wait(receive(peer, kCollectiveChannel, buffer));
  PIPEWRIGHT_CHECK(came == bytes, came, " bytes instead of ", bytes, " from process ", peer);
  std::memcpy(data, buffer.const_data_ptr(), bytes);
}

void WireTeam::barrier() {
  double nothing = 0;
  sum({&nothing, 1});
}

void WireTeam::sum(std::span<double> values) {
  if (rank_ != 0) {
    exchange_bytes(0, values.data(), values.size_bytes(), true);
    exchange_bytes(0, values.data(), values.size_bytes(), false);
    return;
  }
  std::vector<double> others(values.size());
  for (int peer = 1; peer < size_; ++peer) {
    exchange_bytes(peer, others.data(), values.size_bytes(), false);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += others[i];
  }
  for (int peer = 1; peer < size_; ++peer)
    exchange_bytes(peer, values.data(), values.size_bytes(), true);
}

std::vector<std::string> WireTeam::gather(std::string bytes) {
  std::uint64_t length = bytes.size();
  if (rank_ != 0) {
    exchange_bytes(0, &length, sizeof length, true);
    if (length > 0) exchange_bytes(0, bytes.data(), length, true);
    return {};
  }
  std::vector<std::string> all{std::move(bytes)};
  for (int peer = 1; peer < size_; ++peer) {
    exchange_bytes(peer, &length, sizeof length, false);
    std::string& theirs = all.emplace_back(length, '\0');
    if (length > 0) exchange_bytes(peer, theirs.data(), length, false);
  }
  return all;
}

std::unique_ptr<Transport> WireTeam::transport(const Program& program, at::Device own) {
  try {
    device_groups_.prepare(program, own);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Worker || !error.where().empty()) throw;
    throw Error(error.kind(), error.message(), concat("worker ", rank_));
  }
  return wire_transport(program, *this, device_groups_);
}

// ---- the keeper ------------------------------------------------------------------------------

void WireTeam::set_activity(std::function<std::string()> activity) {
  const std::lock_guard lock(mutex_);
  activity_ = std::move(activity);
}

void WireTeam::set_emergency(std::function<void(const Error&, bool speaks)> report) {
  const std::lock_guard lock(emergency_mutex_);
  emergency_ = std::move(report);
}

void WireTeam::keep() {
  std::unique_lock lock(mutex_);
  while (keeping_) {
    const auto now = Clock::now();
    if (now - last_round_ > kOwnGap)  // we were stopped ourselves: nobody was silent
      for (Peer& peer : peers_) peer.heard += now - last_round_;
    last_round_ = now;
    listen();
    release_sent();
    beat();
    if (stopped() && !signal_seen_) signal_seen_ = now;
    if (!failure_) look_for_silence();
    if (!failure_) look_for_standstill();
    if (!failure_) look_at_devices();
    lock.unlock();
    end_if_stuck();
    lock.lock();
    if (keeping_) woken_.wait_for(lock, sent_.empty() ? kIdleRound : kBusyRound);
  }
}

void WireTeam::listen() {
  while (const auto note = wire_->hear()) understand(*note);
}

void WireTeam::understand(const Wire::Note& note) {
  Peer& peer = peers_[static_cast<std::size_t>(note.from)];
  peer.heard = Clock::now();
  const std::string text = note.text.substr(1);
  switch (note.text[0]) {
    case 'H':  // hello: process and host
      peer.process = std::stoi(text);
      peer.host = text.substr(text.find(' ') + 1);
      break;
    case 'B':  // heartbeat: how long it has waited, what it does
      peer.waited = std::chrono::milliseconds(std::stoll(text));
      peer.activity = text.substr(text.find(' ') + 1);
      break;
    case 'L': peer.left = true; break;
    case 'F': {  // failure: kind, speaker, where, message
      const std::vector<std::string> parts = split(text, '\n');
      PIPEWRIGHT_CHECK(parts.size() >= 4, "a damaged note");
      const auto kind = static_cast<ErrorKind>(std::stoi(parts[0]));
      if (!failure_) failure_ = {Error(kind, parts[3], parts[2]), std::stoi(parts[1]), peer.heard};
      break;
    }
    default: PIPEWRIGHT_CHECK(false, "an unknown note");
  }
}

void WireTeam::beat() {
  const auto now = Clock::now();
  if (now - last_beat_ < patience_.heartbeat) return;
  last_beat_ = now;
  tell_all(concat("B", waited().count(), " ", activity_ ? activity_() : std::string()));
}

void WireTeam::tell_all(const std::string& note) {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) wire_->tell(peer, note.substr(0, Wire::kLongestNote));
}

Error WireTeam::lost(int peer, const std::string& what) const {
  const Peer& lost = peers_[static_cast<std::size_t>(peer)];
  const std::string place = lost.activity.empty() ? concat("worker ", peer)
                                                  : concat("worker ", peer, ", ", lost.activity);
  return Error(ErrorKind::Worker,
               concat("its process ", lost.process, " on ", lost.host, " ", what), place);
}

bool WireTeam::dead(const Peer& peer) const {
  return peer.process != 0 && !peer.left && peer.host == host_name() &&
         process_is_gone(peer.process);
}

std::optional<Error> WireTeam::death() const {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && dead(peers_[static_cast<std::size_t>(peer)]))
      return lost(peer, "was killed");
  return std::nullopt;
}

void WireTeam::look_for_silence() {
  // If this process was stopped since its round began, it has heard nobody: that is no silence.
  const auto now = last_round_;
  for (int p = 0; p < size_; ++p) {
    Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (p == rank_ || peer.left || now - peer.heard < 3 * patience_.heartbeat) continue;
    if (dead(peer)) return fail(lost(p, "was killed"));
    if (now - peer.heard > patience_.silence)
      return fail(lost(p, concat("has not answered for ", patience_.silence.count() / 1000,
                                 " s (stopped, or its machine or link is down)")));
  }
}

std::chrono::milliseconds WireTeam::waited() const {
  const auto now = Clock::now(), since = waiting_since_.value_or(now);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::max(now - since, {}));
}

/// Everybody waits for somebody: no message can come any more.
void WireTeam::look_for_standstill() {
  if (waited() < patience_.standstill) return;
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && peers_[static_cast<std::size_t>(p)].waited < patience_.standstill) return;
  fail(Error(ErrorKind::Worker,
             concat("every worker waits for another, and nothing has come for ",
                    patience_.standstill.count() / 1000, " s"),
             place()));
}

void WireTeam::look_at_devices() {
  const std::string failure = device_groups_.failure();
  if (failure.empty()) return;
  fail(death().value_or(Error(ErrorKind::Worker, concat("NCCL: ", failure), place())));
}

std::string WireTeam::place() const {
  const std::string activity = activity_ ? activity_() : std::string();
  return concat("worker ", rank_, activity.empty() ? "" : ", ", activity);
}

/// Nobody is expected to write anything any more.
bool WireTeam::others_left() const {
  for (int p = 0; p < size_; ++p) {
    const Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (p != rank_ && !peer.left && !dead(peer)) return false;
  }
  return true;
}

int WireTeam::first_living() const {
  const auto now = Clock::now();
  for (int p = 0; p < rank_; ++p) {
    const Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (!dead(peer) && now - peer.heard < patience_.silence) return p;
  }
  return rank_;
}

void WireTeam::fail(const Error& error) {
  failure_ = {error, first_living(), Clock::now()};
  const auto one_line = [](std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
  };
  tell_all(concat("F", static_cast<int>(error.kind()), "\n", failure_->speaker, "\n",
                  one_line(error.where()), "\n", one_line(error.message())));
}

Error WireTeam::settle(const Error& error) {
  const auto until = Clock::now() + patience_.last_look;
  const std::unique_lock lock(mutex_);
  if (failure_) return failure_->error;
  if (error.kind() != ErrorKind::Interrupted) {
    // A device's message fails too when the process at its other end has died.
    fail(error.kind() == ErrorKind::Worker ? death().value_or(error) : error);
    return failure_->error;
  }
  // MPI answers the death of a process with SIGTERM to the others: look who is missing.
  for (; !failure_ && Clock::now() < until; std::this_thread::sleep_for(5ms)) {
    listen();
    if (const auto died = death(); died && !failure_) fail(*died);
  }
  if (!failure_) fail(error);
  return failure_->error;
}

bool WireTeam::speaks() {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || failure_->speaker != rank_) return false;
  }
  Reporter nobody = Reporter::Nobody;
  return reporter_.compare_exchange_strong(nobody, Reporter::Work) || nobody == Reporter::Work;
}

/// The work has had its time to react to a failure or a signal: speak for it, and end.
void WireTeam::end_if_stuck() {
  if (leaving_) return;
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (signal_seen_ && !failure_ && now - *signal_seen_ > patience_.after_signal)
      fail(death().value_or(Error(ErrorKind::Interrupted, "stopped by a signal")));
    if (!failure_) return;
    const auto patience = signal_seen_ ? patience_.after_signal : patience_.reaction;
    if (now - std::min(failure_->since, signal_seen_.value_or(now)) < patience) return;
    failure = failure_;
  }
  {
    const std::lock_guard lock(emergency_mutex_);
    Reporter nobody = Reporter::Nobody;
    const bool speaks =
        failure->speaker == rank_ && reporter_.compare_exchange_strong(nobody, Reporter::Keeper);
    if (emergency_) emergency_(failure->error, speaks);
  }
  leave(static_cast<int>(failure->error.kind()));
}

// ---- the end ---------------------------------------------------------------------------------

void WireTeam::part() {
  barrier();
  {
    const std::lock_guard lock(mutex_);
    tell_all("L");
    keeping_ = false;
  }
  woken_.notify_all();
  keeper_.join();
  wire_->close();
}

void WireTeam::leave(int exit_code) {
  int speaker = rank_;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) speaker = failure_->speaker;
    if (!leaving_.exchange(true) && speaker != rank_) tell_all("L");
  }
  if (speaker != rank_) {
    const auto until = Clock::now() + kOthersWait;
    for (bool left = false; !left && Clock::now() < until; std::this_thread::sleep_for(10ms)) {
      const std::lock_guard lock(mutex_);
      listen();
      left = peers_[static_cast<std::size_t>(speaker)].left;
    }
    ::_exit(exit_code);
  }
  const auto until = Clock::now() + kFarewell;
  for (; Clock::now() < until; std::this_thread::sleep_for(10ms)) {
    const std::lock_guard lock(mutex_);
    listen();
    if (others_left()) break;
  }
  const std::lock_guard lock(mutex_);
  tell_all("L");
  wire_->abort(exit_code);
  ::_exit(exit_code);
}

}  // namespace pipewright
