// SPDX-License-Identifier: Apache-2.0
/// Mutexes whose use clang checks when it compiles (`-Wthread-safety`, preset `clang`): a member
/// that is GUARDED_BY a mutex is read and written only while that mutex is held, and a function
/// that REQUIRES one is called only then. Other compilers see std::mutex and
/// std::condition_variable. https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define PIPEWRIGHT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define PIPEWRIGHT_THREAD_ANNOTATION(x)
#endif
#define PIPEWRIGHT_GUARDED_BY(mutex) PIPEWRIGHT_THREAD_ANNOTATION(guarded_by(mutex))
/// The caller holds the mutex. Also for lambdas: `[&]() PIPEWRIGHT_REQUIRES(mutex_) { … }`.
#define PIPEWRIGHT_REQUIRES(mutex) PIPEWRIGHT_THREAD_ANNOTATION(requires_capability(mutex))
/// The caller does not hold the mutex, because the function locks it.
#define PIPEWRIGHT_EXCLUDES(mutex) PIPEWRIGHT_THREAD_ANNOTATION(locks_excluded(mutex))
/// The function returns this mutex.
#define PIPEWRIGHT_RETURNS_MUTEX(mutex) PIPEWRIGHT_THREAD_ANNOTATION(lock_returned(mutex))

namespace pipewright {

class Lock;

class PIPEWRIGHT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 private:
  friend class Lock;
  std::mutex mutex_;
};

/// Holds a mutex from its construction to its end, except between unlock() and lock().
class PIPEWRIGHT_THREAD_ANNOTATION(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) PIPEWRIGHT_THREAD_ANNOTATION(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~Lock() PIPEWRIGHT_THREAD_ANNOTATION(release_capability()) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void unlock() PIPEWRIGHT_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }
  void lock() PIPEWRIGHT_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

/// A condition variable. Waits may end for no reason, so callers wait in a loop that tests what
/// they wait for: clang follows a loop, but not a predicate that is handed over.
class Condition {
 public:
  void wait(Lock& lock) { condition_.wait(lock.lock_); }
  void wait_for(Lock& lock, std::chrono::microseconds at_most) {
    condition_.wait_for(lock.lock_, at_most);
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace pipewright
