// SPDX-License-Identifier: Apache-2.0
// Loaded with LD_PRELOAD, makes the k-th pthread_create of the process fail as the system does when
// there are too many threads: with EAGAIN.
//
//   FAILING_THREADS_AT     k, from 1
//   FAILING_THREADS_NAME   only in programs of that name, so that mpirun itself is left alone
//   FAILING_THREADS_RANK   only in the process that Open MPI gives this rank; not set: in all
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

bool concerns_this_process() {
  const char* const name = std::getenv("FAILING_THREADS_NAME");
  const char* const rank = std::getenv("FAILING_THREADS_RANK");
  const char* const own = std::getenv("OMPI_COMM_WORLD_RANK");
  if (name != nullptr && std::strcmp(name, program_invocation_short_name) != 0) return false;
  return rank == nullptr || (own != nullptr && std::strcmp(rank, own) == 0);
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  static const long at = std::atol(std::getenv("FAILING_THREADS_AT"));
  static const bool concerned = concerns_this_process();
  static std::atomic<long> calls{0};
  if (concerned && ++calls == at) return EAGAIN;
  return create(thread, attributes, run, argument);
}
