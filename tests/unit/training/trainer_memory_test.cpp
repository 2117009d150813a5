// SPDX-License-Identifier: Apache-2.0
// What a training keeps in memory does not grow with its steps.
#include <gtest/gtest.h>
#include <malloc.h>

#include "core/training/trainer.h"
#include "tests/unit/records/run_folders.h"
#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

class TrainerMemory : public RunFolders {
 protected:
  /// Bytes in use after a training of so many epochs of six steps, more than before it.
  double kept(int epochs, bool steps) const {
    const double before = static_cast<double>(::mallinfo2().uordblks);
    Laboratory laboratory(concat("{train.epochs: ", epochs, ", train.evaluate_every: 1000000, ",
                                 "train.checkpoint: {every: 100}, output.steps: ", steps, "}"));
    const RunFolder folder(root_ / concat(epochs, steps));
    Team alone;
    Trainer trainer(laboratory.plan(), alone, &folder, nullptr, nullptr);
    trainer.train();
    return static_cast<double>(::mallinfo2().uordblks) - before;
  }
};

TEST_F(TrainerMemory, IsThatOfEpochsAndNotOfSteps) {
  constexpr int kFew = 20, kMany = 420;
  constexpr double kBytesOfAStep = sizeof(std::vector<double>) + sizeof(double);
  for (const bool steps : {true, false}) {
    kept(kFew, steps);  // what is made at first use
    const double grown = kept(kMany, steps) - kept(kFew, steps);
    // A row of epochs.csv for every six steps, in a vector with room for as many again.
    const double rows = 2.0 * kMany * sizeof(EpochRow);
    EXPECT_LT(grown, rows + 6 * (kMany - kFew) * kBytesOfAStep / 4) << steps;
  }
}

}  // namespace
}  // namespace pipewright::test
