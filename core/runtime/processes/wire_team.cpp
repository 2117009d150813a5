#include "core/runtime/processes/wire_team.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/runtime/processes/channels.h"
#include "core/runtime/processes/wire_transport.h"
#include "core/stage/torch.h"
#include "core/system/foreign_error.h"

namespace pipewright {
namespace {

using namespace std::chrono_literals;

/// How often the keeper looks around: where pieces wait for others to have gone, where messages are
/// on their way, and otherwise.
constexpr std::chrono::microseconds kBacklogRound = 500us, kBusyRound = 2ms, kIdleRound = 20ms;
/// A gap in the keeper's own rounds that means this very process was stopped for a while.
constexpr auto kOwnGap = 1s;
/// Notes wait behind the pieces of a message on a slow link: silence is so many times longer than
/// the pieces are apart.
constexpr int kGapsOfSilence = 8;
/// How long at most the speaker lets others finish what they write, and they wait for the end.
constexpr std::chrono::milliseconds kFarewell = 1s, kOthersWait = 4s;

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
      peers_(static_cast<std::size_t>(size_)),
      mail_(*wire_, patience_.now),
      last_round_(now()),
      moved_at_(last_round_) {
  for (Peer& peer : peers_) peer.heard = last_round_;
  tell_all(HelloNote{own_identity()});
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
      mail_.advance_sends();
      const bool over = condition();
      if (over || failure_) waiting_since_.reset();
      if (over) return;
      if (failure_) throw failure_->error;
      if (!waiting_since_) waiting_since_ = now() + allowance;
    }
    if (stopped()) throw Error(ErrorKind::Interrupted, "stopped while waiting for another worker");
  }
}

Mail::Ticket WireTeam::send(int peer, int channel, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  mail_.advance_sends();
  return mail_.send(peer, channel, std::move(tensor));
}

void WireTeam::decline(int peer, int channel, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  mail_.decline(peer, channel, bytes);
}

void WireTeam::wait_until_gone(Mail::Ticket sent) {
  wait_for([&] { return mail_.gone(sent); });
}

Mail::Ticket WireTeam::receive(int peer, int channel, at::Tensor tensor) {
  const std::lock_guard lock(mutex_);
  return mail_.receive(peer, channel, std::move(tensor));
}

std::size_t WireTeam::wait(Mail::Ticket received) {
  std::optional<std::size_t> bytes;
  wait_for([&] {
    bytes = mail_.come(received);
    return bytes.has_value();
  });
  return *bytes;
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
  {
    const std::lock_guard lock(mutex_);
    // The others learn the first one at once: from here on a death is told with an action.
    if (!activity_) last_beat_ -= patience_.heartbeat;
    activity_ = std::move(activity);
  }
  woken_.notify_all();
}

void WireTeam::set_emergency(std::function<void(const Error&, bool speaks)> report) {
  const std::lock_guard lock(emergency_mutex_);
  emergency_ = std::move(report);
}

void WireTeam::keep() {
  std::unique_lock lock(mutex_);
  while (keeping_) {
    try_to([this] { look_around(); });
    lock.unlock();
    end_if_stuck();
    lock.lock();
    if (keeping_) woken_.wait_for(lock, round());
  }
}

void WireTeam::look_around() {
  const TimePoint time = now();
  if (time - last_round_ > kOwnGap) {  // we were stopped ourselves: nobody was silent or still
    for (Peer& peer : peers_) peer.heard += time - last_round_;
    moved_at_ = time;
  }
  last_round_ = time;
  listen();
  drive_mail();
  beat();
  if (stopped() && !signal_seen_) signal_seen_ = time;
  if (!failure_) look_for_deaths();
  if (!failure_) look_for_silence();
  if (!failure_) look_for_standstill();
  if (!failure_) look_at_devices();
}

std::chrono::microseconds WireTeam::round() const {
  if (mail_.has_backlog()) return kBacklogRound;
  return mail_.sending() ? kBusyRound : kIdleRound;
}

void WireTeam::listen() {
  while (const auto note = wire_->hear()) understand(*note);
}

void WireTeam::understand(const Wire::Note& note) {
  PIPEWRIGHT_CHECK(note.from >= 0 && note.from < size_, "a note from process ", note.from);
  Peer& peer = peer_of(note.from);
  peer.heard = now();
  TeamNote said;
  try {
    said = parsed_note(note.text, size_);
  } catch (const Error& error) {
    throw Error(ErrorKind::Worker, concat(error.message(), " from worker ", note.from), place());
  }
  if (const auto* const hello = std::get_if<HelloNote>(&said)) peer.identity = hello->process;
  if (const auto* const beat = std::get_if<HeartbeatNote>(&said)) {
    peer.still = beat->still;
    peer.activity = beat->activity;
  }
  if (std::holds_alternative<FarewellNote>(said)) peer.left = true;
  const auto* const failed = std::get_if<FailureNote>(&said);
  if (failed != nullptr && !failure_) failure_ = {failed->error, failed->speaker, peer.heard};
}

/// Goes on with what is under way, and notes what has moved.
void WireTeam::drive_mail() {
  mail_.advance_sends();
  mail_.advance_receives();
  if (mail_.moved() != moved_) moved_at_ = last_round_;
  moved_ = mail_.moved();
  for (int p = 0; p < size_; ++p) {
    Peer& peer = peer_of(p);
    const bool amid = mail_.amid_message_from(p);
    if (mail_.come_from(p) != peer.come) {
      peer.come = mail_.come_from(p);
      if (peer.amid) peer.longest_gap = std::max(peer.longest_gap, last_round_ - peer.piece_came);
      peer.heard = peer.piece_came = last_round_;
    }
    peer.amid = amid;
    if (!amid) peer.longest_gap = {};
  }
}

void WireTeam::beat() {
  if (last_round_ - last_beat_ < patience_.heartbeat) return;
  last_beat_ = last_round_;
  if (activity_) last_activity_ = activity_();
  tell_all(HeartbeatNote{still(), last_activity_});
}

void WireTeam::look_for_deaths() {
  if (last_round_ - last_look_ < patience_.death) return;
  last_look_ = last_round_;
  if (!death()) return;
  listen();  // what it said before it ended explains its end
  if (const auto died = death(); died && !failure_) fail(*died);
}

void WireTeam::look_for_silence() {
  // If this process was stopped since its round began, it has heard nobody: that is no silence.
  for (int p = 0; p < size_; ++p) {
    const Peer& peer = peer_of(p);
    if (p == rank_ || peer.left || last_round_ - peer.heard < silence_of(peer)) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(silence_of(peer)).count();
    return fail(lost(p, concat("has not answered for ", seconds,
                               " s (stopped, or its machine or link is down)")));
  }
}

/// All wait for each other: no message can come any more.
void WireTeam::look_for_standstill() {
  if (still() < patience_.standstill) return;
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && peer_of(p).still < patience_.standstill) return;
  const std::chrono::duration<double> seconds = patience_.standstill;
  fail(Error(ErrorKind::Worker,
             concat("every worker waits for another, and no message has moved for ",
                    seconds.count(), " s (pipeline.timeout)"),
             place()));
}

void WireTeam::look_at_devices() {
  const std::string failure = device_groups_.failure();
  if (failure.empty()) return;
  fail(death().value_or(Error(ErrorKind::Worker, concat("NCCL: ", failure), place())));
}

/// The work has had its time to react to a failure or a signal: speak for it, and end.
void WireTeam::end_if_stuck() {
  if (leaving_) return;
  std::optional<Failure> failure;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint time = now();
    if (signal_seen_ && !failure_ && time - *signal_seen_ > patience_.after_signal)
      try_to(
          [this] { fail(death().value_or(Error(ErrorKind::Interrupted, "stopped by a signal"))); });
    if (!failure_) return;
    const auto patience = signal_seen_ ? patience_.after_signal : patience_.reaction;
    if (time - std::min(failure_->since, signal_seen_.value_or(time)) < patience) return;
    failure = failure_;
  }
  try {
    const std::lock_guard lock(emergency_mutex_);
    Reporter nobody = Reporter::Nobody;
    const bool speaks =
        failure->speaker == rank_ && reporter_.compare_exchange_strong(nobody, Reporter::Keeper);
    if (emergency_) emergency_(failure->error, speaks);
  } catch (const std::exception&) {
    // What cannot be written down any more keeps nobody from ending.
  }
  leave(static_cast<int>(failure->error.kind()));
}

// ---- what the keeper knows -------------------------------------------------------------------

std::chrono::milliseconds WireTeam::still() const {
  if (!waiting_since_) return {};
  const auto since = std::max(*waiting_since_, moved_at_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(now() - since, Clock::duration{}));
}

std::string WireTeam::place() const {
  std::string activity = last_activity_;
  try {
    if (activity_) activity = activity_();
  } catch (const std::exception&) {
    // The last one known will do: another error is being reported.
  }
  return concat("worker ", rank_, activity.empty() ? "" : ", ", activity);
}

Error WireTeam::lost(int peer, const std::string& what) const {
  const Peer& lost = peer_of(peer);
  const std::string place = lost.activity.empty() ? concat("worker ", peer)
                                                  : concat("worker ", peer, ", ", lost.activity);
  return Error(ErrorKind::Worker,
               concat("its process ", lost.identity.process, " on ", lost.identity.host, " ", what),
               place);
}

bool WireTeam::dead(const Peer& peer) const {
  return !peer.left && has_ended(peer.identity);
}

std::optional<Error> WireTeam::death() const {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && dead(peer_of(peer))) return lost(peer, "was killed");
  return std::nullopt;
}

WireTeam::Clock::duration WireTeam::silence_of(const Peer& peer) const {
  return patience_.silence + kGapsOfSilence * peer.longest_gap;
}

bool WireTeam::gone_or_silent(const Peer& peer) const {
  return peer.left || dead(peer) || now() - peer.heard > silence_of(peer);
}

/// Nobody is expected to write anything any more.
bool WireTeam::others_left() const {
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && !gone_or_silent(peer_of(p))) return false;
  return true;
}

int WireTeam::first_living() const {
  for (int p = 0; p < rank_; ++p)
    if (!dead(peer_of(p)) && now() - peer_of(p).heard < silence_of(peer_of(p))) return p;
  return rank_;
}

// ---- failures --------------------------------------------------------------------------------

void WireTeam::fail(const Error& error) {
  failure_ = {error, first_living(), now()};
  tell_all(FailureNote{error, failure_->speaker});
}

/// What throws in it is a failure of this process's worker, and keeps nobody from ending.
template <class Act>
void WireTeam::try_to(const Act& act) {
  try {
    try {
      act();
    } catch (const std::exception& error) {
      if (failure_) return;
      const auto* const known = dynamic_cast<const Error*>(&error);
      if (known != nullptr && !known->where().empty()) return fail(*known);
      const std::string message = known != nullptr ? known->message() : error.what();
      fail(Error(ErrorKind::Worker, message, place()));
    }
  } catch (const std::exception&) {
    // The others cannot be told; they notice that we have gone.
  }
}

void WireTeam::tell_all(const TeamNote& note) {
  const std::string text = note_text(note).substr(0, Wire::kLongestNote);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) wire_->tell(peer, text);
}

Error WireTeam::settle(const Error& error) {
  const auto until = now() + patience_.last_look;
  const std::unique_lock lock(mutex_);
  if (failure_) return failure_->error;
  const auto end_with = [this](const Error& what) { try_to([&] { fail(what); }); };
  if (error.kind() != ErrorKind::Interrupted) {
    const bool worker = error.kind() == ErrorKind::Worker;
    const Error own =
        worker && error.where().empty() ? Error(error.kind(), error.message(), place()) : error;
    // A device's message fails too when the process at its other end has died.
    end_with(worker ? death().value_or(own) : own);
    return failure_->error;
  }
  // MPI answers the death of a process with SIGTERM to the others: look who is missing.
  for (; !failure_ && now() < until; std::this_thread::sleep_for(5ms)) {
    try_to([this] { listen(); });
    if (const auto died = death(); died && !failure_) end_with(*died);
  }
  if (!failure_) end_with(error);
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

// ---- the end ---------------------------------------------------------------------------------

void WireTeam::part() {
  barrier();
  {
    const std::lock_guard lock(mutex_);
    tell_all(FarewellNote{});
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
    if (!leaving_.exchange(true) && speaker != rank_) try_to([this] { tell_all(FarewellNote{}); });
  }
  const auto listen_until = [this](Clock::duration at_most, const auto& condition) {
    const TimePoint end = now() + at_most;
    for (bool over = false; !over && now() < end; std::this_thread::sleep_for(10ms)) {
      const std::lock_guard lock(mutex_);
      try_to([this] { listen(); });
      over = condition();
    }
  };
  if (speaker != rank_) {
    listen_until(kOthersWait, [&] { return peer_of(speaker).left; });
    ::_exit(exit_code);
  }
  listen_until(kFarewell, [&] { return others_left(); });
  const std::lock_guard lock(mutex_);
  try_to([this] { tell_all(FarewellNote{}); });
  wire_->abort(exit_code);
  ::_exit(exit_code);
}

}  // namespace pipewright
