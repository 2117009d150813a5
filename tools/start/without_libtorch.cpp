// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/system/child_process.h"
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

void need_libtorch() try {
  const std::filesystem::path program = module_file("with_libtorch/pipewright");
  if (program.empty()) throw Error(ErrorKind::Data, "with_libtorch/pipewright is missing");
  if (std::getenv(kStarted) != nullptr)  // this is the program that should have had it
    throw Error(ErrorKind::Data, "with_libtorch/pipewright has none");
  ::setenv(kStarted, "1", 1);
  become(program, own_arguments());
} catch (const std::exception& error) {
  print_error("the part of the program that has LibTorch: %s; install Pipewright again\n",
              error.what());
  ::_exit(static_cast<int>(ErrorKind::Data));
}

void prepare_libtorch() {}

}  // namespace pipewright
