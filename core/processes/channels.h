// SPDX-License-Identifier: Apache-2.0
/// The numbers of a wire's channels.
#pragma once

namespace pipewright {

inline constexpr int kCollectiveChannel = 1;
inline constexpr int kJoinChannel = 5;    ///< ids of NCCL communicators
inline constexpr int kShapesChannel = 9;  ///< shapes of messages between devices
inline constexpr int reduction_channel(int stage) {
  return 2 + 4 * stage;
}
/// Channel of a link's messages; announcement_channel() is that of their shapes.
inline constexpr int link_channel(int link) {
  return 3 + 4 * link;
}
inline constexpr int announcement_channel(int link) {
  return 4 + 4 * link;
}

}  // namespace pipewright
