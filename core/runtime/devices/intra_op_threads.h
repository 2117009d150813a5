// SPDX-License-Identifier: Apache-2.0
/// The number of threads within an operator of LibTorch.
#pragma once

#include "core/base/error.h"

namespace pipewright {

/// Starts pools · (threads − 1) threads, as many as OpenMP will start for that many callers, and
/// ends them again: OpenMP ends the process if one of its threads cannot be started. Throws
/// Error{`kind`}.
void check_pools(int pools, int threads, ErrorKind kind = ErrorKind::Data);

/// Sets the number of threads while it lives, then restores it. Throws as check_pools() does.
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
