/// How many threads an operator of LibTorch's uses.
#pragma once

#include <ATen/Parallel.h>

namespace pipewright {

/// So many for as long as it lives, then as many as before.
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int threads) : before_(at::get_num_threads()) {
    at::set_num_threads(threads);
  }
  ~IntraOpThreads() { at::set_num_threads(before_); }
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int before_;
};

}  // namespace pipewright
