// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/devices/intra_op_threads.h"

#include <ATen/Parallel.h>

#include <latch>
#include <thread>
#include <vector>

#include "core/system/foreign_error.h"

namespace pipewright {

void check_pools(int pools, int threads, ErrorKind kind) {
  const int wanted = pools * (threads - 1);
  std::latch all_there(1);
  std::vector<std::jthread> started;
  try {
    while (static_cast<int>(started.size()) < wanted)
      started.emplace_back([&] { all_there.wait(); });
  } catch (const std::exception& error) {
    all_there.count_down();
    throw thread_error(concat("pipeline.threads (", pools, " times ", threads, ")"), error, kind);
  }
  all_there.count_down();
}

IntraOpThreads::IntraOpThreads(int threads) : before_(at::get_num_threads()) {
  check_pools(1, threads);
  at::set_num_threads(threads);
}

IntraOpThreads::~IntraOpThreads() {
  at::set_num_threads(before_);
}

}  // namespace pipewright
