/// Ctrl-C and SIGTERM as a flag that long work looks at.
#pragma once

#include <atomic>

namespace pipewright {

/// Installs the handlers once and returns the flag they set. A second signal ends the program at
/// once, as it would without us.
const std::atomic<bool>* interrupt_flag();
/// Another signal sets the flag, too.
void interrupt_on(int signal);

}  // namespace pipewright
