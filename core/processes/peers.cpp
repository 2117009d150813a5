// SPDX-License-Identifier: Apache-2.0
#include "core/processes/peers.h"

#include <algorithm>

#include "core/base/error.h"

namespace pipewright {
namespace {

/// On a slow link notes queue behind the pieces of a message, so the silence timeout grows by this
/// many times the longest gap between pieces.
constexpr int kGapsOfSilence = 8;

}  // namespace

Peers::Peers(Wire& wire, const TeamPatience& patience)
    : wire_(wire),
      patience_(patience),
      rank_(wire.rank()),
      size_(wire.size()),
      peers_(static_cast<std::size_t>(size_)) {
  tell_all(HelloNote{own_identity()});
  const TimePoint now = patience_.now();  // being stopped until here is no silence of others
  for (Peer& peer : peers_) peer.heard = now;
}

// ---- notes -----------------------------------------------------------------------------------

void Peers::tell_all(const TeamNote& note) {
  const std::string text = note_text(note).substr(0, Wire::kLongestNote);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) wire_.tell(peer, text);
}

void Peers::listen() {
  while (const auto note = wire_.hear()) understand(*note);
}

void Peers::understand(const Wire::Note& note) {
  PIPEWRIGHT_CHECK(note.from >= 0 && note.from < size_, "a note from process ", note.from);
  Peer& peer = peers_[static_cast<std::size_t>(note.from)];
  peer.heard = patience_.now();
  TeamNote said;
  try {
    said = parsed_note(note.text, size_);
  } catch (const Error& error) {
    throw Error(ErrorKind::Worker, concat(error.message(), " from worker ", note.from), where());
  }
  if (const auto* const hello = std::get_if<HelloNote>(&said)) peer.identity = hello->process;
  if (const auto* const beat = std::get_if<HeartbeatNote>(&said)) {
    peer.still = beat->still;
    peer.activity = beat->activity;
  }
  if (std::holds_alternative<FarewellNote>(said)) peer.left = true;
  if (std::holds_alternative<FinishedNote>(said)) peer.finished = true;
  const auto* const failed = std::get_if<FailureNote>(&said);
  if (failed != nullptr && !failure_) failure_ = {failed->error, failed->speaker, peer.heard};
}

void Peers::beat(std::chrono::milliseconds still) {
  if (activity_) last_activity_ = activity_();
  tell_all(HeartbeatNote{still, last_activity_});
}

std::string Peers::where() const {
  std::string activity = last_activity_;
  try {
    if (activity_) activity = activity_();
  } catch (const std::exception&) {
    // The last known action is good enough: another error is being reported.
  }
  return concat("worker ", rank_, activity.empty() ? "" : ", ", activity);
}

// ---- signs of life ---------------------------------------------------------------------------

void Peers::note_progress(const Mail& mail, TimePoint round) {
  for (int p = 0; p < size_; ++p) {
    Peer& peer = peers_[static_cast<std::size_t>(p)];
    const bool amid = mail.amid_message_from(p);
    if (mail.come_from(p) != peer.come) {
      peer.come = mail.come_from(p);
      if (peer.amid) peer.longest_gap = std::max(peer.longest_gap, round - peer.piece_came);
      peer.heard = peer.piece_came = round;
    }
    peer.amid = amid;
    if (!amid) peer.longest_gap = {};
  }
}

void Peers::forgive(Clock::duration gap) {
  for (Peer& peer : peers_) peer.heard += gap;
}

Error Peers::lost(int process, const std::string& what) const {
  const Peer& peer = peer_of(process);
  const std::string where = peer.activity.empty() ? concat("worker ", process)
                                                  : concat("worker ", process, ", ", peer.activity);
  const std::string name = peer.identity.host.empty()
                               ? std::string()
                               : concat(" ", peer.identity.process, " on ", peer.identity.host);
  return Error(ErrorKind::Worker, concat("its process", name, " ", what), where);
}

bool Peers::known() const {
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && peer_of(p).identity.host.empty()) return false;
  return true;
}

bool Peers::dead(const Peer& peer) const {
  return !peer.left && has_ended(peer.identity);
}

std::optional<Error> Peers::death() const {
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && dead(peer_of(p))) return lost(p, "was killed");
  return std::nullopt;
}

Peers::Clock::duration Peers::silence_of(const Peer& peer) const {
  return patience_.silence + kGapsOfSilence * peer.longest_gap;
}

bool Peers::silent(const Peer& peer, TimePoint time) const {
  return !peer.finished && time - peer.heard >= silence_of(peer);
}

std::optional<Error> Peers::silence(TimePoint time) const {
  for (int p = 0; p < size_; ++p) {
    const Peer& peer = peer_of(p);
    if (p == rank_ || peer.left || !silent(peer, time)) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(silence_of(peer)).count();
    return lost(p, concat("has not answered for ", seconds,
                          " s: it was stopped, or its machine or link is down"));
  }
  return std::nullopt;
}

bool Peers::others_stand_still() const {
  for (int p = 0; p < size_; ++p)
    if (p != rank_ && peer_of(p).still < patience_.standstill) return false;
  return true;
}

bool Peers::others_left() const {
  for (int p = 0; p < size_; ++p) {
    const Peer& peer = peer_of(p);
    if (p != rank_ && !peer.left && !dead(peer) && !silent(peer, patience_.now())) return false;
  }
  return true;
}

int Peers::first_living() const {
  for (int p = 0; p < rank_; ++p) {
    const Peer& peer = peer_of(p);
    if (!dead(peer) && !silent(peer, patience_.now())) return p;
  }
  return rank_;
}

// ---- the failure -----------------------------------------------------------------------------

void Peers::fail(const Error& error) {
  failure_ = {error, first_living(), patience_.now()};
  tell_all(FailureNote{error, failure_->speaker});
}

void Peers::try_to(const std::function<void()>& act) {
  try {
    try {
      act();
    } catch (const std::exception& error) {
      if (failure_) return;
      const auto* const known = dynamic_cast<const Error*>(&error);
      if (known != nullptr && !known->where().empty()) return fail(*known);
      const std::string message = known != nullptr ? known->message() : error.what();
      fail(Error(ErrorKind::Worker, message, where()));
    }
  } catch (const std::exception&) {
    // The others cannot be told, but they notice that this process has ended.
  }
}

}  // namespace pipewright
