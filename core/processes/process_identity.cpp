// SPDX-License-Identifier: Apache-2.0
#include "core/processes/process_identity.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "core/base/text.h"
#include "core/system/host_name.h"

namespace pipewright {
namespace {

std::string process_space() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code none;
  const auto names = std::filesystem::read_symlink("/proc/self/ns/pid", none);
  return boot.empty() || names.empty() ? std::string() : concat(boot, " ", names.string());
}

}  // namespace

ProcessIdentity own_identity() {
  return {::getpid(), process_space(), host_name()};
}

bool has_ended(const ProcessIdentity& other) {
  static const std::string kHere = process_space();
  if (other.process == 0 || kHere.empty() || other.space != kHere) return false;
  std::ifstream stat(concat("/proc/", other.process, "/stat"));
  std::string line;
  if (!std::getline(stat, line)) return ::kill(other.process, 0) != 0 && errno == ESRCH;
  const std::size_t end =
      line.rfind(')');  // the state follows; Z and X: only the exit code is left
  return end != std::string::npos && end + 2 < line.size() &&
         (line[end + 2] == 'Z' || line[end + 2] == 'X');
}

}  // namespace pipewright
