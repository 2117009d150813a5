/// How many threads an operator of LibTorch's uses.
#pragma once

#include "core/base/error.h"

namespace pipewright {

/// Starts as many threads as `pools` pools of `threads` have, their callers not counted, and ends
/// them again: OpenMP would end the process where one cannot be started. Throws Error{`kind`}.
void check_pools(int pools, int threads, ErrorKind kind = ErrorKind::Data);

/// So many for as long as it lives, then as many as before. Throws as check_pools().
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int threads);
  ~IntraOpThreads();
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int before_;
};

}  // namespace pipewright
