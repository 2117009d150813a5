// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD, makes the k-th allocation after main() has begun fail: malloc, calloc,
// realloc, posix_memalign, aligned_alloc, and with them operator new.
//
//   FAILING_MALLOC_AT      k, from 1; 0 = none
//   FAILING_MALLOC_LEAST   count only allocations of at least so many bytes
//   FAILING_MALLOC_ON      set: all from the k-th on fail
//   FAILING_MALLOC_NAME    only in programs of that name, so that mpirun itself is left alone
//   FAILING_MALLOC_RANK    only in the process that Open MPI gives this rank; not set: in all
//   FAILING_MALLOC_COUNT   a file that gets the number of allocations when the process exits
//   FAILING_MALLOC_TRACE   a file that gets the stack of the one that failed
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

std::atomic<bool> began{false};
std::atomic<long> calls{0};
long at = 0, least = 0;
bool all_from_there = false;

void write_stack() {
  const char* const file = std::getenv("FAILING_MALLOC_TRACE");
  if (file == nullptr) return;
  void* frames[64];
  const int depth = ::backtrace(frames, 64);
  const int out = ::open(file, O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::backtrace_symbols_fd(frames, depth, out);
  ::close(out);
}

bool fails(size_t bytes) {
  if (!began.load(std::memory_order_relaxed) || bytes < static_cast<size_t>(least)) return false;
  const long call = ++calls;
  if (all_from_there ? call < at : call != at) return false;
  if (at == 0) return false;
  if (call == at) {
    began = false;  // the trace may allocate
    write_stack();
    began = true;
  }
  errno = ENOMEM;
  return true;
}

long number(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

bool concerns_this_process() {
  const char* const name = std::getenv("FAILING_MALLOC_NAME");
  const char* const rank = std::getenv("FAILING_MALLOC_RANK");
  const char* const own = std::getenv("OMPI_COMM_WORLD_RANK");
  if (name != nullptr && std::strcmp(name, program_invocation_short_name) != 0) return false;
  return rank == nullptr || (own != nullptr && std::strcmp(rank, own) == 0);
}

void write_count() {
  const long count = calls;
  began = false;
  const char* const file = std::getenv("FAILING_MALLOC_COUNT");
  if (file == nullptr) return;
  const int out = ::open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::dprintf(out, "%ld\n", count);
  ::close(out);
}

std::atomic<bool> counted{false};

using Main = int(int, char**, char**);
Main* real_main = nullptr;

int counted_main(int count, char** values, char** environment) {
  at = number("FAILING_MALLOC_AT");
  least = number("FAILING_MALLOC_LEAST");
  all_from_there = std::getenv("FAILING_MALLOC_ON") != nullptr;
  void* frames[2];
  ::backtrace(frames, 2);  // loads what it needs
  if (concerns_this_process()) {
    std::atexit(write_count);
    began = counted = true;
  }
  return real_main(count, values, environment);
}

}  // namespace

extern "C" {

int __libc_start_main(Main* entry, int count, char** values, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto* const start = reinterpret_cast<Start*>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  real_main = entry;
  return start(counted_main, count, values, init, fini, loader_fini, stack_end);
}

/// Skips what atexit() has registered.
void _exit(int code) {
  if (counted) write_count();
  for (;;) ::syscall(SYS_exit_group, code);
}

void* malloc(size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  return fails(count * bytes) ? nullptr : __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_realloc(old, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  return fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  if (fails(bytes)) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
