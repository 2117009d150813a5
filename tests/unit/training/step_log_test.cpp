// SPDX-License-Identifier: Apache-2.0
// The file in which losses are kept instead of in memory.
#include "core/training/step_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright::test {
namespace {

class StepLogs : public RunFolders {
 protected:
  std::string text(const RowLog& log) const {
    log.copy_to(root_ / "copy.csv");
    return read_file(root_ / "copy.csv");
  }
};

constexpr double kThird = 1.0 / 3;

TEST_F(StepLogs, HaveTheRowsOfStepsCsv) {
  RowLog log = begin_steps(root_, 0, step_columns({1}, false));
  EXPECT_EQ(text(log), "epoch,minibatch,loss,loss_1\n");
  log.append(step_rows({{0.5, kThird}, {2, std::nan("")}, {1e-9, 3}}, 4, 5));
  EXPECT_EQ(text(log),
            "epoch,minibatch,loss,loss_1\n0,4,0.5,0.33333333333333331\n1,0,2,\n"
            "1,1,1.0000000000000001e-09,3\n");
}

TEST_F(StepLogs, GoOnWhereACheckpointWasWritten) {
  RowLogPart part;
  std::string whole;
  {
    RowLog log = begin_steps(root_, 0, {"loss"});
    log.append(step_rows({{1}, {2}}, 0, 2));
    part = log.part();
    log.append(step_rows({{3}, {4}}, 2, 2));
    whole = text(log);
  }
  put("steps-000000.csv", whole + "2,0,half of a r");
  check_row_log(root_, part);
  RowLog log = go_on_with_steps(root_, part, 2, {"loss"});
  EXPECT_EQ(log.part().checksum, part.checksum);
  EXPECT_EQ(text(log), "epoch,minibatch,loss\n0,0,1\n0,1,2\n");
  log.append(step_rows({{3}, {4}}, 2, 2));
  EXPECT_EQ(text(log), whole);
}

TEST_F(StepLogs, AreCheckedAsFarAsTheyAreKnown) {
  RowLog log = begin_steps(root_, 0, {"loss"});
  log.append(step_rows({{1}, {2}}, 0, 2));
  const RowLogPart part = log.part();
  const std::string whole = text(log);
  for (const std::string& damaged : {std::string(), whole.substr(0, whole.size() - 1),
                                     whole.substr(0, 22) + "7" + whole.substr(23)}) {
    put(part.name, damaged);
    EXPECT_THROW(check_row_log(root_, part), Error) << damaged;
  }
  put(part.name, whole + "more");
  EXPECT_NO_THROW(check_row_log(root_, part));
  std::filesystem::remove(root_ / part.name);
  EXPECT_THROW(check_row_log(root_, part), Error);
  EXPECT_NO_THROW(check_row_log(root_, {})) << "none are kept";
}

TEST_F(StepLogs, LeaveLossesOfOtherStagesEmpty) {
  RowLogPart part;
  {
    RowLog log = begin_steps(root_, 0, step_columns({0, 1}, false));
    log.append(step_rows({{1, 5, 6}, {2, 7, 8}}, 0, 2));
    part = log.part();
  }
  const RowLog other = go_on_with_steps(root_, part, 2, step_columns({0}, false));
  EXPECT_EQ(text(other), "epoch,minibatch,loss,loss_0\n0,0,1,\n0,1,2,\n");
  EXPECT_NO_THROW(check_row_log(root_, part)) << "a checkpoint before still needs it";
  const RowLog none = go_on_with_steps(root_, other.part(), 2, {"loss"});
  EXPECT_EQ(text(none), "epoch,minibatch,loss\n0,0,1\n0,1,2\n");
}

// A file of an earlier program has no rates, which its losses outlive.
TEST_F(StepLogs, LeaveRatesEmptyThatWereNotWritten) {
  RowLogPart part;
  {
    RowLog log = begin_steps(root_, 0, step_columns({1}, false));
    log.append(step_rows({{1, 5}, {2, 6}}, 0, 2));
    part = log.part();
  }
  RowLog later = go_on_with_steps(root_, part, 2, step_columns({1}, true));
  later.append(step_rows({{3, 7, 0.5}}, 2, 2));
  EXPECT_EQ(text(later), "epoch,minibatch,loss,loss_1,lr\n0,0,1,5,\n0,1,2,6,\n1,0,3,7,0.5\n");
  const RowLog other = go_on_with_steps(root_, later.part(), 3, step_columns({0}, true));
  EXPECT_EQ(text(other), "epoch,minibatch,loss,loss_0,lr\n0,0,1,,\n0,1,2,,\n1,0,3,,0.5\n");
}

}  // namespace
}  // namespace pipewright::test
