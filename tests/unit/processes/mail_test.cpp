// SPDX-License-Identifier: Apache-2.0
// Messages of any size in pieces: whole, in order, and not more of them at once than a link takes.
#include "core/processes/mail.h"

#include <gtest/gtest.h>

#include "core/tensors/torch.h"
#include "tests/unit/processes/memory_wire.h"

namespace pipewright::test {
namespace {

constexpr auto kPiece = static_cast<std::int64_t>(Wire::kLargestPiece);

at::Tensor bytes(std::int64_t count, int seed = 0) {
  return at::arange(seed, count + seed, at::kInt).remainder(251).to(at::kByte);
}

/// A clock that stands: every link is fast.
Mail::Clock::time_point no_time() {
  return {};
}

/// Two ends, driven in turn.
struct Ends {
  std::vector<std::unique_ptr<Wire>> wires = memory_wires(2);
  Mail one{*wires[0], no_time}, two{*wires[1], no_time};

  std::size_t wait(Mail::Ticket received) {
    for (;;) {
      one.advance_sends();
      if (const auto came = two.come(received)) return *came;
    }
  }
};

TEST(Mail, BringsMessagesOfAllSizes) {
  Ends ends;
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{1}, kPiece - 1, kPiece, kPiece + 1, 5 * kPiece + 7}) {
    const at::Tensor sent = bytes(size), room = at::zeros({size}, at::kByte);
    const auto going = ends.one.send(1, 3, sent);
    EXPECT_EQ(ends.wait(ends.two.receive(0, 3, room)), static_cast<std::size_t>(size));
    EXPECT_TRUE(at::equal(room, sent)) << size;
    ends.one.advance_sends();
    EXPECT_TRUE(ends.one.gone(going)) << size;
    EXPECT_FALSE(ends.one.sending()) << size;
  }
}

TEST(Mail, KeepsTheOrderOfAChannel) {
  Ends ends;
  std::vector<at::Tensor> sent, rooms;
  std::vector<Mail::Ticket> tickets;
  for (int i = 0; i < 20; ++i) {
    sent.push_back(bytes(i % 3 == 0 ? 3 * kPiece + i : 10 * i, i));
    ends.one.send(1, 3, sent.back());
  }
  for (const at::Tensor& each : sent) {
    rooms.push_back(at::empty_like(each));
    tickets.push_back(ends.two.receive(0, 3, rooms.back()));
  }
  for (const Mail::Ticket ticket : tickets) ends.wait(ticket);
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_TRUE(at::equal(rooms[i], sent[i])) << i;
}

TEST(Mail, BringsAChannelThoughAnotherIsNotAskedFor) {
  Ends ends;
  ends.one.send(1, 3, bytes(100 * kPiece));
  const at::Tensor sent = bytes(9 * kPiece, 1), room = at::empty_like(sent);
  ends.one.send(1, 4, sent);
  ends.wait(ends.two.receive(0, 4, room));
  EXPECT_TRUE(at::equal(room, sent));
}

TEST(Mail, DeclinesAMessageOfSeveralPieces) {
  Ends ends;
  const std::int64_t asked = 3 * kPiece + 5;
  ends.one.decline(1, 3, static_cast<std::size_t>(asked));
  const at::Tensor sent = bytes(2 * kPiece), room = at::empty_like(sent);
  ends.one.send(1, 3, sent);
  EXPECT_EQ(ends.wait(ends.two.receive(0, 3, at::empty({asked}, at::kByte))), 0U);
  ends.wait(ends.two.receive(0, 3, room));
  EXPECT_TRUE(at::equal(room, sent));
}

TEST(Mail, TakesAShorterMessageOfOnePiece) {
  Ends ends;
  ends.one.send(1, 3, bytes(10));
  EXPECT_EQ(ends.wait(ends.two.receive(0, 3, at::empty({100}, at::kByte))), 10U);
}

TEST(Mail, CountsEachPieceThatMoves) {
  Ends ends;
  const auto going = ends.one.send(1, 3, bytes(4 * kPiece));
  EXPECT_EQ(ends.one.moved(), 0);
  EXPECT_TRUE(ends.one.has_backlog()) << "not all at once on a link that is not known";
  const auto ticket = ends.two.receive(0, 3, at::empty({4 * kPiece}, at::kByte));
  ends.two.advance_receives();
  const std::int64_t first = ends.two.come_from(0);
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 4);
  EXPECT_TRUE(ends.two.amid_message_from(0));
  ends.wait(ticket);
  EXPECT_EQ(ends.two.come_from(0), 4);
  EXPECT_FALSE(ends.two.amid_message_from(0));
  ends.one.advance_sends();
  EXPECT_EQ(ends.one.moved(), 4);
  EXPECT_TRUE(ends.one.gone(going));
}

TEST(Mail, HasMoreUnderWayWhereALinkIsFast) {
  Ends ends;
  const at::Tensor long_one = bytes(200 * kPiece);
  const auto pieces_at_once = [&] {  // that arrive before the sender looks again
    ends.one.send(1, 3, long_one);
    const auto ticket = ends.two.receive(0, 3, at::empty_like(long_one));
    const std::int64_t before = ends.two.come_from(0);
    ends.two.advance_receives();
    const std::int64_t at_once = ends.two.come_from(0) - before;
    ends.wait(ticket);
    ends.one.advance_sends();
    return at_once;
  };
  EXPECT_EQ(pieces_at_once(), 2);
  EXPECT_GE(pieces_at_once(), 16);
}

}  // namespace
}  // namespace pipewright::test
