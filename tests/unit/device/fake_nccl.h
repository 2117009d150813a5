/// NCCL for the fake devices and for processes that are threads. Tells the model of streams what
/// NCCL promises: a receive is done after its send, each in the order of its own stream.
#pragma once

#include <cstdint>

#include "core/runtime/devices/nccl.h"

namespace pipewright::test {

const NcclApi* fake_nccl();

/// Messages of more than a byte sent since the last call, all together.
int take_nccl_messages();
/// That send from now (1: the next one) and all later ones fail: "a cable was pulled". −1: none.
void fail_nccl_at(int send);
/// The same, but noticed in the background only.
void fail_nccl_in_background(bool fails);

}  // namespace pipewright::test
