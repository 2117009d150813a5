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
  static const bool installed =
      std::signal(SIGINT, on_signal) != SIG_ERR && std::signal(SIGTERM, on_signal) != SIG_ERR;
  static_cast<void>(installed);
  return &interruption;
}

void interrupt_on(int signal) {
  std::signal(signal, on_signal);
}

}  // namespace pipewright
