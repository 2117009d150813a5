// SPDX-License-Identifier: Apache-2.0
/// Ctrl-C, SIGTERM and the end of the terminal (SIGHUP) as a flag that long work polls.
#pragma once

#include <atomic>

namespace pipewright {

/// Installs the handlers, unless a signal has come, and returns the flag that they set. A second
/// signal ends the program at once, as it would without handlers. A forked process calls it again.
const std::atomic<bool>* interrupt_flag();
/// Lets another signal set the flag, too.
void interrupt_on(int signal);

}  // namespace pipewright
