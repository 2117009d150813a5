// SPDX-License-Identifier: Apache-2.0
// What happens with each input, whoever made it: libFuzzer or driver.cpp.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/fuzz/target.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIPEWRIGHT_COUNTS_MEMORY
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PIPEWRIGHT_COUNTS_MEMORY
#endif
#ifdef PIPEWRIGHT_COUNTS_MEMORY
// As in sanitizer/allocator_interface.h, which GCC does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*allocated)(const volatile void* memory, std::size_t size),
    void (*released)(const volatile void* memory));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
#endif

// The first report of a sanitizer ends the program, also where nobody sets these variables.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}

namespace pipewright::fuzz {
namespace {

// Bytes that are allocated now, and the most since count_memory() began.
std::atomic<std::int64_t> allocated{0}, most_allocated{0};
Usage most;

#ifdef PIPEWRIGHT_COUNTS_MEMORY
void count_allocation(const volatile void*, std::size_t size) {
  const std::int64_t now = allocated += static_cast<std::int64_t>(size);
  if (now > most_allocated) most_allocated = now;
}
void count_release(const volatile void* memory) {
  allocated -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory));
}
const bool kCounting =
    __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release) != 0;
#endif

Outcome read_once(std::string_view bytes) {
  try {
    return {true, kTarget.read(bytes)};
  } catch (const Error& error) {
    require(std::ranges::count(kTarget.refusals, error.kind()) > 0,
            concat("threw an Error of kind ", static_cast<int>(error.kind()), ": ", error.what()));
    return {false, error.what()};
  } catch (const std::exception& error) {
    require(false, concat("threw another exception than Error: ", error.what()));
  }
  return {};
}

/// Checks how much memory it takes.
Outcome read_counting(std::string_view bytes) {
  const std::int64_t before = allocated;
  most_allocated = before;
  Outcome read = read_once(bytes);
  const auto used = static_cast<std::size_t>(most_allocated - before);
  if (used > most.memory) most = {used, bytes.size()};
  const std::size_t limit = kTarget.most_memory(bytes);
  require(used <= limit, concat("allocated ", used, " bytes at a time for an input of ",
                                bytes.size(), ": more than ", limit));
  return read;
}

}  // namespace

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "the target does not hold: %s\n", what.c_str());
  std::abort();
}

Outcome outcome(std::string_view bytes) {
  // A copy of just this size, so that a byte read beyond it is seen.
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  std::ranges::copy(bytes, copy.get());
  const std::string_view exactly(copy.get(), bytes.size());
  Outcome first = read_counting(exactly);
  const Outcome second = read_once(exactly);
  require(first.taken == second.taken && first.text == second.text,
          concat("the same bytes gave two outcomes: '", first.text, "' and '", second.text, "'"));
  return first;
}

Usage most_used() {
  return most;
}

}  // namespace pipewright::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pipewright::fuzz::outcome({reinterpret_cast<const char*>(data), size});
  return 0;
}
