// SPDX-License-Identifier: Apache-2.0
/// Trains the same in one thread, in threads and in processes.
#pragma once

#include <gtest/gtest.h>

#include <mutex>

#include "core/runtime/executor.h"
#include "core/tensors/torch.h"
#include "tests/unit/processes/memory_wire.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {

/// Expects the same weights and losses of an experiment with these changes in one thread and in
/// threads, and the same weights in as many processes as it has workers.
inline void expect_same_bits_in_processes(const std::string& changes) {
  Laboratory laboratory(changes);
  const Stages serial = laboratory.plan().stages();
  const auto losses = flat_losses(train(laboratory.plan(), serial, Execution::Serial));
  Stages threads = laboratory.plan().stages();
  EXPECT_EQ(flat_losses(train(laboratory.plan(), threads, Execution::Threads)), losses);
  EXPECT_EQ(difference(serial, threads), "") << changes;
  Stages all(serial.size());
  std::mutex mutex;
  const auto ended = play(laboratory.experiment.shape(1).workers(), [&](WireTeam& team) {
    Laboratory own(changes);
    Stages stages = own.plan().stages(team);
    train(own.plan(), stages, Execution::Mpi, nullptr, 0, &team);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (stages[i]) all[i] = std::move(stages[i]);
  });
  for (const Ended& process : ended)
    if (process.error) FAIL() << changes << process.error->what();
  EXPECT_EQ(difference(serial, all), "") << changes;
}

}  // namespace pipewright::test
