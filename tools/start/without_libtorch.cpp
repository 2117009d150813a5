// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
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

/// Throws Error{Data} if the program with LibTorch would not find it: neither beside the program,
/// where an installation may have it, nor where the build found it or a wheel expects it.
void check_libtorch() {
  if (const char* const why = std::getenv(kNoLibtorch); why != nullptr)
    throw Error(ErrorKind::Data, why);
  if (!module_file("libtorch/lib/libtorch_cpu.so").empty()) return;
  if (std::getenv("LD_LIBRARY_PATH") != nullptr) return;
  const auto expected =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / PIPEWRIGHT_LIBTORCH;
  if (::access(expected.c_str(), R_OK) == 0) return;
  throw Error(
      ErrorKind::Data,
      concat("cannot be read (", std::strerror(errno),
             "); `cmake --install build --prefix PREFIX --component libtorch` puts a copy that "
             "every user can read into the installation"),
      expected.string());
}

void start_with_libtorch() {
  const std::filesystem::path program = module_file("with_libtorch/pipewright");
  if (program.empty()) throw Error(ErrorKind::Data, "with_libtorch/pipewright is missing");
  if (std::getenv(kStarted) != nullptr)  // this is the program that should have had it
    throw Error(ErrorKind::Data, "with_libtorch/pipewright has none");
  ::setenv(kStarted, "1", 1);
  become(program, own_arguments());
}

/// Performs a step; if it throws, says of what, and ends the process.
void attempt(const char* what, void (*step)(), const char* advice) try {
  step();
} catch (const std::exception& error) {
  print_error("%s: %s%s\n", what, error.what(), advice);
  ::_exit(static_cast<int>(ErrorKind::Data));
}

}  // namespace

void need_libtorch() {
  attempt("LibTorch", check_libtorch, "");
  attempt("the part of the program that has LibTorch", start_with_libtorch,
          "; install Pipewright again");
}

void prepare_libtorch() {}

}  // namespace pipewright
