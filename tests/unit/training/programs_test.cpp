// SPDX-License-Identifier: Apache-2.0
// Which segments of a training share a program, and how often a schedule is planned for them.
#include "core/training/programs.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

/// Another scheme, whose schedules are counted.
class CountedScheme : public Scheme {
 public:
  CountedScheme(std::shared_ptr<const Scheme> scheme, int& planned)
      : scheme_(std::move(scheme)), planned_(planned) {}
  Schedule schedule(const PipelineShape& shape) const override {
    ++planned_;
    return scheme_->schedule(shape);
  }
  bool repeats() const override { return scheme_->repeats(); }

 private:
  std::shared_ptr<const Scheme> scheme_;
  int& planned_;
};

/// A laboratory whose scheme is counted from the moment its plan is made.
struct CountedLaboratory {
  explicit CountedLaboratory(const std::string& changes) : laboratory(changes) {
    auto& scheme = laboratory.experiment.scheme;
    scheme = std::make_shared<CountedScheme>(scheme, planned);
    laboratory.plan();
    planned = 0;
  }

  Laboratory laboratory;
  int planned = 0;
};

TEST(Programs, OfASchemeThatRepeatsArePlannedOnceForEachLength) {
  CountedLaboratory counted("{scheme: {name: pipedream}, pipeline.stages: 4}");
  const Plan& plan = counted.laboratory.plan();
  Programs programs(plan);
  EXPECT_EQ(&programs.segment(0, plan.training.minibatches()), &plan.training);
  EXPECT_EQ(&programs.segment(7, plan.training.minibatches()), &plan.training);
  EXPECT_EQ(counted.planned, 0);
  const Program& part = programs.segment(0, 2);
  EXPECT_EQ(part.minibatches(), 2);
  const int once = counted.planned;
  EXPECT_GT(once, 0);
  EXPECT_EQ(&programs.segment(5, 2), &part);
  EXPECT_EQ(counted.planned, once);
}

TEST(Programs, OfOthersDependOnWhereTheyBeginAndAreSharedWhereTheyAreEqual) {
  CountedLaboratory counted(
      "{scheme: {name: pipemare, warmup: 3, annealing: 0}, pipeline.stages: 4}");
  const Plan& plan = counted.laboratory.plan();
  ASSERT_FALSE(plan.experiment->scheme->repeats());
  Programs programs(plan);
  const Program &early = programs.segment(0, 2), &late = programs.segment(100, 2);
  EXPECT_NE(early.schedule.workers, late.schedule.workers);
  EXPECT_EQ(&programs.segment(200, 2), &late);
}

}  // namespace
}  // namespace pipewright::test
