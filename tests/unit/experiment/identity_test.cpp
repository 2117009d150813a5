// Which experiments a checkpoint may pass between.
#include "core/experiment/identity.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/laboratory.h"

namespace pipewright::test {
namespace {

std::string identity(const std::string& changes) {
  return Laboratory(changes).experiment.identity;
}

TEST(Identity, IsKeptByNameOutputAndLayout) {
  for (const char* changes :
       {"{name: x}", "{output.steps: false}", "{pipeline.stages: 2}", "{pipeline.replicas: 2}",
        "{pipeline.balance: layers}", "{pipeline.placement: [0, 0, 1, 1]}",
        "{pipeline.execution: threads}", "{pipeline.threads: 2}", "{pipeline.device: [cpu]}"})
    EXPECT_EQ(identity(changes), identity("{}")) << changes;
}

TEST(Identity, IsChangedByWhatIsLearnedAndHow) {
  for (const char* changes :
       {"{train.seed: 2}", "{train.epochs: 2}", "{optimizer.lr: 0.1}", "{scheme: {name: gpipe}}",
        "{pipeline.microbatches: 2}", "{loader.batch_size: 4}", "{train.precision: float64}",
        "{train.checkpoint: {every: 3, unit: minibatch}}", "{train.drain: never}"})
    EXPECT_NE(identity(changes), identity("{}")) << changes;
}

TEST(LayoutChanges, NamesWhatMayChangeTheBits) {
  auto layout = [](const std::string& changes) {
    return layout_of(Laboratory(changes).experiment.resolved);
  };
  EXPECT_EQ(layout_changes(layout("{}"), layout("{}")), "");
  EXPECT_EQ(layout_changes(layout("{}"), layout("{pipeline.execution: threads}")), "");
  EXPECT_EQ(layout_changes(layout("{}"), layout("{pipeline.stages: 2, pipeline.replicas: 2}")),
            "pipeline.stages 4 → 2, pipeline.replicas 1 → 2");
}

}  // namespace
}  // namespace pipewright::test
