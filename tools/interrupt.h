// SPDX-License-Identifier: Apache-2.0
/// Ctrl-C and SIGTERM as a flag that long work polls.
#pragma once

#include <atomic>

namespace pipewright {

/// Installs the handlers once and returns the flag that they set. A second signal ends the program
/// at once, as it would without handlers.
const std::atomic<bool>* interrupt_flag();
/// Lets another signal set the flag, too.
void interrupt_on(int signal);

}  // namespace pipewright
