// SPDX-License-Identifier: Apache-2.0
// Messages between processes through the host, whatever they are made of.
#include <gtest/gtest.h>

#include "core/processes/wire_links.h"
#include "core/tensors/torch.h"
#include "tests/unit/processes/memory_wire.h"

namespace pipewright::test {
namespace {

/// So many tensors of two dimensions, all of that value.
Tensors tensors_of(int count, int value) {
  Tensors all;
  for (int i = 0; i < count; ++i) all.push_back(at::full({2, 3}, value));
  return all;
}

/// Sends messages of so many tensors from one process to another, and expects them there.
std::vector<Ended> exchange(const std::vector<int>& counts) {
  const auto messages = static_cast<std::int64_t>(counts.size());
  return play(2, [&](WireTeam& team) {
    if (team.rank() == 0) {
      const auto sender = host_sender(team, 1, messages, 0);
      for (int turn = 0; turn < messages; ++turn)
        sender->send(0, tensors_of(counts[static_cast<std::size_t>(turn)], turn));
    } else {
      const auto receiver = host_receiver(team, 0, 0, messages);
      for (int turn = 0; turn < messages; ++turn) {
        const Tensors message = receiver->receive({.link = 0, .turn = turn});
        ASSERT_EQ(std::ssize(message), counts[static_cast<std::size_t>(turn)]) << turn;
        for (const at::Tensor& tensor : message)
          EXPECT_TRUE(at::equal(tensor, at::full({2, 3}, turn))) << turn;
      }
    }
    team.barrier();
  });
}

TEST(HostLinks, BringMessagesOfNoTensorsAndOfMany) {
  for (const Ended& process : exchange({0, 0, 2, 0, 2, 2, 1000, 1000, 0}))
    if (process.error) FAIL() << process.error->what();
}

TEST(HostLinks, RefuseMoreTensorsThanCanBeAnnounced) {
  const std::vector<Ended> ended = exchange({2000});
  ASSERT_TRUE(ended[0].error);
  EXPECT_NE(
      std::string(ended[0].error->what()).find("a message between two stages has 2000 tensors"),
      std::string::npos)
      << ended[0].error->what();
}

}  // namespace
}  // namespace pipewright::test
