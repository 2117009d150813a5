// SPDX-License-Identifier: Apache-2.0
/// A stand-in for NCCL on fake devices, for processes that are threads. It tells the model of
/// streams NCCL's guarantees: a receive is done after its send, each in the order of its own
/// stream.
#pragma once

#include <cstdint>

#include "core/runtime/devices/nccl.h"

namespace pipewright::test {

const NcclApi* fake_nccl();

/// Number of messages of more than one byte that were sent since the last call.
int take_nccl_messages();
/// Lets the send with that number from now on (1: the next one) and all later ones fail with "a
/// cable was pulled"; −1: none.
void fail_nccl_at(int send);
/// Lets NCCL report that failure only asynchronously.
void fail_nccl_in_background(bool fails);
/// Waits until the asynchronous failure has been queried.
void wait_until_nccl_is_asked();

}  // namespace pipewright::test
