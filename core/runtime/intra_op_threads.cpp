#include "core/runtime/intra_op_threads.h"

#include <ATen/Parallel.h>

namespace pipewright {

IntraOpThreads::IntraOpThreads(int threads) : before_(at::get_num_threads()) {
  at::set_num_threads(threads);
}

IntraOpThreads::~IntraOpThreads() {
  at::set_num_threads(before_);
}

}  // namespace pipewright
