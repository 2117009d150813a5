// SPDX-License-Identifier: Apache-2.0
#include "core/processes/collectives.h"

#include <cstring>

#include "core/base/error.h"
#include "core/processes/channels.h"
#include "core/processes/wire_team.h"
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

void sum_over(WireTeam& team, std::span<double> values) {
  if (team.rank() != 0) {
    send_bytes(team, 0, values.data(), values.size_bytes());
    receive_bytes(team, 0, values.data(), values.size_bytes());
    return;
  }
  std::vector<double> others(values.size());
  for (int peer = 1; peer < team.size(); ++peer) {
    receive_bytes(team, peer, others.data(), values.size_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += others[i];
  }
  for (int peer = 1; peer < team.size(); ++peer)
    send_bytes(team, peer, values.data(), values.size_bytes());
}

std::vector<std::string> gather_from(WireTeam& team, std::string bytes) {
  std::uint64_t length = bytes.size();
  if (team.rank() != 0) {
    send_bytes(team, 0, &length, sizeof length);
    if (length > 0) send_bytes(team, 0, bytes.data(), length);
    return {};
  }
  std::vector<std::string> all{std::move(bytes)};
  for (int peer = 1; peer < team.size(); ++peer) {
    receive_bytes(team, peer, &length, sizeof length);
    std::string& theirs = all.emplace_back(length, '\0');
    if (length > 0) receive_bytes(team, peer, theirs.data(), length);
  }
  return all;
}

}  // namespace pipewright
