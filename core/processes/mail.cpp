// SPDX-License-Identifier: Apache-2.0
#include "core/processes/mail.h"

#include <algorithm>

#include "core/base/as_size.h"
#include "core/base/error.h"
#include "core/tensors/torch.h"

namespace pipewright {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPiece = Wire::kLargestPiece;
/// Limits of a channel's window, in bytes in flight.
constexpr std::size_t kLeastWindow = 2 * kPiece, kMostWindow = 64 * kPiece;
/// A window whose bytes take less than kFast is doubled; one that takes more than kSlow is halved.
constexpr auto kFast = 250ms, kSlow = 1000ms;

/// Number of pieces of a message; at least one, so that an empty message arrives, too.
std::size_t pieces_of(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kPiece - 1) / kPiece);
}

std::size_t size_of_piece(std::size_t piece, std::size_t bytes) {
  return std::min(kPiece, bytes - std::min(bytes, piece * kPiece));
}

}  // namespace

Mail::Mail(Wire& wire, Clock::time_point (*now)())
    : wire_(wire), now_(now), come_from_(as_size(wire.size())) {}

// ---- sending ---------------------------------------------------------------------------------

Mail::Ticket Mail::send(int peer, int channel, at::Tensor tensor) {
  const auto pieces = static_cast<int>(pieces_of(tensor.nbytes()));
  return queue(peer, channel, {.tensor = std::move(tensor), .pieces = pieces});
}

void Mail::decline(int peer, int channel, std::size_t bytes) {
  queue(peer, channel,
        {.tensor = at::empty({0}, at::kByte), .pieces = static_cast<int>(pieces_of(bytes))});
}

Mail::Ticket Mail::queue(int peer, int channel, Outgoing message) {
  message.ticket = ++tickets_;
  Lane& lane = lanes_[{peer, channel}];
  lane.messages.push_back(std::move(message));
  going_.insert(tickets_);
  advance(peer, channel, lane);
  return tickets_;
}

void Mail::advance_sends() {
  backlog_ = false;
  if (going_.empty()) return;
  for (auto& [to, lane] : lanes_)
    if (!lane.messages.empty()) advance(to.first, to.second, lane);
}

void Mail::advance(int peer, int channel, Lane& lane) {
  // Only the first piece is tested: pieces are sent in order, and every test costs time.
  while (!lane.under_way.empty() && wire_.done(lane.under_way.front().ticket)) {
    const Piece piece = lane.under_way.front();
    lane.under_way.pop_front();
    ++moved_;
    ++piece.message->gone;
    lane.bytes_under_way -= piece.bytes;
    measure(lane, piece.bytes);
  }
  while (!lane.messages.empty() && lane.messages.front().gone == lane.messages.front().pieces) {
    going_.erase(lane.messages.front().ticket);
    lane.messages.pop_front();
    --lane.begun;
  }
  for (; lane.begun < lane.messages.size(); ++lane.begun) {
    Outgoing& message = lane.messages[lane.begun];
    const auto* const data = static_cast<const std::byte*>(message.tensor.const_data_ptr());
    const std::size_t bytes = message.tensor.nbytes();
    for (; message.begun < message.pieces; ++message.begun) {
      const std::size_t piece = as_size(message.begun), size = size_of_piece(piece, bytes);
      if (lane.bytes_under_way > 0 && lane.bytes_under_way + size > lane.window) {
        backlog_ = true;
        return;
      }
      const auto* const from = size == 0 ? data : data + piece * kPiece;
      lane.under_way.push_back({wire_.send(peer, channel, from, size), size, &message});
      lane.bytes_under_way += size;
    }
  }
}

/// Measures the time for a window's worth of bytes and adapts the window. The clock starts when the
/// first piece of a busy period has left.
void Mail::measure(Lane& lane, std::size_t bytes) {
  const auto now = now_();
  if (lane.since) {
    lane.measured += bytes;
  } else {
    lane.since = now;
    lane.measured = 0;
  }
  if (lane.measured >= lane.window) {
    const auto taken = now - *lane.since;
    if (taken < kFast) lane.window = std::min(kMostWindow, 2 * lane.window);
    if (taken > kSlow) lane.window = std::max(kLeastWindow, lane.window / 2);
    lane.since = now;
    lane.measured = 0;
  }
  const bool idle = lane.under_way.empty() && lane.begun == lane.messages.size();
  if (idle) lane.since.reset();
}

// ---- receiving -------------------------------------------------------------------------------

Mail::Ticket Mail::receive(int peer, int channel, at::Tensor tensor) {
  auto* const data = static_cast<std::byte*>(tensor.mutable_data_ptr());
  const std::size_t bytes = tensor.nbytes();
  Incoming message{.peer = peer, .tensor = std::move(tensor)};
  message.pieces.reserve(pieces_of(bytes));
  for (std::size_t piece = 0; piece < pieces_of(bytes); ++piece)
    message.pieces.push_back(wire_.receive(peer, channel, piece == 0 ? data : data + piece * kPiece,
                                           size_of_piece(piece, bytes)));
  incoming_.emplace(++tickets_, std::move(message));
  return tickets_;
}

void Mail::look_at(Incoming& message) {
  for (; message.come < message.pieces.size(); ++message.come) {
    const auto bytes = wire_.done(message.pieces[message.come]);
    if (!bytes) return;
    message.bytes += *bytes;
    ++moved_;
    ++come_from_[as_size(message.peer)];
  }
}

std::optional<std::size_t> Mail::come(Ticket ticket) {
  const auto found = incoming_.find(ticket);
  PIPEWRIGHT_CHECK(found != incoming_.end(), "no such message");
  Incoming& message = found->second;
  look_at(message);
  if (message.come < message.pieces.size()) return std::nullopt;
  const std::size_t bytes = message.bytes;
  incoming_.erase(found);
  return bytes;
}

void Mail::advance_receives() {
  for (auto& [ticket, message] : incoming_) look_at(message);
}

bool Mail::amid_message_from(int peer) const {
  return std::ranges::any_of(incoming_, [&](const auto& each) {
    const Incoming& message = each.second;
    return message.peer == peer && message.come > 0 && message.come < message.pieces.size();
  });
}

}  // namespace pipewright
