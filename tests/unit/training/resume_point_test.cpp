// SPDX-License-Identifier: Apache-2.0
// Processes go on from one checkpoint together, or say what each of them sees.
#include "core/training/resume_point.h"

#include <gtest/gtest.h>

#include <mutex>

#include "core/system/file.h"
#include "tests/unit/processes/memory_wire.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright::test {
namespace {

class ResumePoints : public RunFolders {
 protected:
  /// A checkpoint of so many files after that many mini-batches.
  void save(const std::string& folder, std::int64_t minibatches) const {
    CheckpointManifest manifest{.minibatches = minibatches, .epochs = 3, .identity = "same"};
    for (const char* name : {"stage-0.safetensors", "stage-1.safetensors"}) {
      const auto path = root_ / folder / manifest.folder() / name;
      write_file(path, concat(name, minibatches));
      manifest.files.push_back(described_file(path));
    }
    commit_manifest(root_ / folder, manifest);
  }
};

TEST_F(ResumePoints, AreTheSameForAllProcesses) {
  save("shared", 6);
  save("shared", 12);
  const auto ended = play(3, [&](WireTeam& team) {
    const ResumePoint point = choose_checkpoint(root_ / "shared", "same", team);
    EXPECT_EQ(point.manifest->minibatches, 12);
    EXPECT_EQ(point.remark, "");
  });
  for (const Ended& process : ended) EXPECT_EQ(process.error, nullptr);
}

TEST_F(ResumePoints, AreRefusedWhereProcessesSeeDifferentOnes) {
  save("of-0", 6);
  const auto ended = play(3, [&](WireTeam& team) {
    choose_checkpoint(root_ / concat("of-", team.rank()), "same", team);
    ADD_FAILURE() << team.rank() << " goes on";
  });
  for (const Ended& process : ended) {
    ASSERT_NE(process.error, nullptr);
    EXPECT_EQ(process.error->kind(), ErrorKind::Data);
    for (const char* part : {"rank 0 on ", " sees a checkpoint after mini-batch 6 (", "rank 1 on ",
                             "rank 2 on ", " sees no checkpoint", "is the folder shared"})
      EXPECT_NE(process.error->message().find(part), std::string::npos) << process.error->message();
  }
}

TEST_F(ResumePoints, AreRefusedWhereOneProcessSeesAnOlderOne) {
  save("of-0", 6);
  save("of-1", 6);
  save("of-0", 12);
  const auto ended = play(2, [&](WireTeam& team) {
    choose_checkpoint(root_ / concat("of-", team.rank()), "same", team);
    ADD_FAILURE() << team.rank() << " goes on";
  });
  ASSERT_NE(ended[1].error, nullptr);
  EXPECT_NE(ended[1].error->message().find("sees a checkpoint after mini-batch 6"),
            std::string::npos);
}

TEST_F(ResumePoints, AreRefusedWhereProcessesReadDifferentExperiments) {
  save("shared", 6);
  const auto ended = play(2, [&](WireTeam& team) {
    choose_checkpoint(root_ / "shared", team.first() ? "same" : "other", team);
    ADD_FAILURE() << team.rank() << " goes on";
  });
  ASSERT_NE(ended[0].error, nullptr);
  EXPECT_NE(ended[0].error->message().find("reads another experiment (other)"), std::string::npos);
}

TEST_F(ResumePoints, AreTheOnesBeforeWhereAnyProcessFindsDamage) {
  for (const char* damaged :
       {"000012/stage-0.safetensors", "000012/stage-1.safetensors", "manifest.json"}) {
    save("shared", 6);
    save("shared", 12);
    write_file(root_ / "shared" / damaged, "cut");
    const auto ended = play(2, [&](WireTeam& team) {
      const ResumePoint point = choose_checkpoint(root_ / "shared", "same", team);
      EXPECT_EQ(point.manifest->minibatches, 6);
      if (team.first()) {
        EXPECT_NE(point.remark.find(damaged), std::string::npos) << point.remark;
      }
    });
    for (const Ended& process : ended) EXPECT_EQ(process.error, nullptr);
    std::filesystem::remove_all(root_ / "shared");
  }
}

TEST_F(ResumePoints, AreNoneWhereAllAreDamaged) {
  save("shared", 6);
  write_file(root_ / "shared/000006/stage-1.safetensors", "cut");
  const auto ended = play(2, [&](WireTeam& team) {
    choose_checkpoint(root_ / "shared", "same", team);
    ADD_FAILURE() << team.rank() << " goes on";
  });
  ASSERT_NE(ended[0].error, nullptr);
  EXPECT_EQ(ended[0].error->where(), (root_ / "shared/000006/stage-1.safetensors").string());
  EXPECT_NE(ended[1].error, nullptr);
}

}  // namespace
}  // namespace pipewright::test
