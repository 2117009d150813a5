/// Memory that training frees and takes again every step stays with the process.
#pragma once

namespace pipewright {

/// Tells the C library not to give freed blocks back to the system and not to map large ones afresh
/// each time: pipelines free and take tensors of many megabytes in every step, and each new page
/// costs a fault (measured: VGG-16, batch 32: 6 % of a step). Call once, before the first tensor.
void keep_freed_memory();

}  // namespace pipewright
