/// How many threads an operator of LibTorch's uses.
#pragma once

namespace pipewright {

/// So many for as long as it lives, then as many as before.
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
