// SPDX-License-Identifier: Apache-2.0
#include "tools/interrupt.h"

#include <csignal>

namespace pipewright {
namespace {

std::atomic<bool> interruption = false;

extern "C" void on_signal(int signal) {
  interruption = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>* interrupt_flag() {
  if (!interruption) {  // else the next signal is the second one
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
    if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // under nohup
  }
  return &interruption;
}

void interrupt_on(int signal) {
  std::signal(signal, on_signal);
}

}  // namespace pipewright
