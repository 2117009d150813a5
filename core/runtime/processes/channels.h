/// Who uses which channel of a wire.
#pragma once

namespace pipewright {

inline constexpr int kCollectiveChannel = 1;
inline constexpr int kJoinChannel = 5;    ///< device groups coming together
inline constexpr int kShapesChannel = 9;  ///< of messages between devices
inline constexpr int reduction_channel(int stage) {
  return 2 + 4 * stage;
}
/// A link's messages, and the announcements of their shapes.
inline constexpr int link_channel(int link) {
  return 3 + 4 * link;
}
inline constexpr int announcement_channel(int link) {
  return 4 + 4 * link;
}

}  // namespace pipewright
