// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/system/file.h"
#include "core/system/machine_limits.h"
#include "core/system/module_file.h"
#include "core/system/terminal.h"
#include "tools/start/libtorch.h"

namespace pipewright {
namespace {

/// The arguments that this process was started with, its name first.
std::vector<std::string> own_arguments() {
  std::vector<std::string> words;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return words;
  std::string word;
  for (int c = 0; (c = std::fgetc(file)) != EOF;)
    if (c != 0)
      word += static_cast<char>(c);
    else
      words.push_back(std::exchange(word, {}));
  std::fclose(file);
  return words;
}

}  // namespace

void need_libtorch() {
  const std::filesystem::path program = module_file("with_libtorch/pipewright");
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  if (!program.empty()) ::execv(program.c_str(), words.data());
  print_error(
      "cannot start the part of the program that has LibTorch: %s; install Pipewright again\n",
      program.empty() ? "with_libtorch/pipewright is missing"
                      : concat(program.string(), ": ", errno_text(errno)).c_str());
  ::_exit(static_cast<int>(ErrorKind::Data));
}

}  // namespace pipewright
