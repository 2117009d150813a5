// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/stopped_clock.h"

#include "core/base/error.h"

namespace pipewright {

void refuse_stop(const Schedule& schedule, const PassIndex& index, const Hardware& hardware,
                 const std::vector<Wait>& waits) {
  const Deadlock deadlock = explain_deadlock(schedule, index, waits);
  std::string why;
  if (hardware.receives != Receives::AnyOrder)
    why = concat(", where copies.receives is ",
                 hardware.receives == Receives::InOrder ? "in_order" : "rendezvous",
                 hardware.sending_blocks ? " and copies.block_compute true" : "");
  throw Error(ErrorKind::Schedule,
              concat("the schedule stops on the hardware '", hardware.name, "'", why, ": ",
                     deadlock.message),
              concat("worker ", deadlock.root.first, ", action ", deadlock.root.second));
}

}  // namespace pipewright
