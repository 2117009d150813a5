// SPDX-License-Identifier: Apache-2.0
// Only files of our own names are deleted, and no link is followed.
#include "core/records/run_claim.h"

#include "core/records/run_files.h"
#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

TEST(RunFiles, AreKnownByTheirWholeNames) {
  for (const char* const name : {"run.json", "steps.csv", "last-actions-0.txt",
                                 "last-actions-12.txt", "events.out.tfevents.pipewright"})
    EXPECT_TRUE(is_run_file(name)) << name;
  for (const char* const name :
       {"", "run.jsonx", "Run.json", "last-actions-.txt", "last-actions-plan.txt",
        "last-actions-1.txt.orig", "steps.csv.12.part", "checkpoint", "point.json"})
    EXPECT_FALSE(is_run_file(name)) << name;
}

class Claims : public RunFolders {
 protected:
  Claims() : folder_(root_ / "run") {
    const FolderLock lock = claim(folder_, {});
    put("run/z.txt", "mine");  // a folder that stays empty is given back
  }

  std::string refusal(const ClaimTerms& terms) const {
    return error_text([&] { claim(folder_, terms); });
  }
  bool has(const std::string& name) const {
    return fs::exists(fs::symlink_status(folder_.path() / name));
  }

  RunFolder folder_;
};

TEST_F(Claims, RemoveWhatAKilledProcessWasWritingAndNothingElse) {
  for (const char* const name :
       {"steps.csv.7.part", "point.json.7-1.part", "checkpoint/manifest.json.7.part",
        "checkpoint/000004/stage-0.safetensors.7.part"}) {
    put(concat("run/", std::string_view(name)), "half");
    claim(folder_, {});
    EXPECT_FALSE(has(name)) << name;
  }
  for (const char* const name :
       {"film.mkv.7.part", "steps.csv.part", "steps.csv.x.part", "steps.csv.7.part.old",
        "checkpoint/best.pt.7.part", "checkpoint/000004/mine.7.part"}) {
    put(concat("run/", std::string_view(name)), "mine");
    claim(folder_, {});
    EXPECT_TRUE(has(name)) << name;
  }
}

TEST_F(Claims, ClearedFoldersKeepFilesOfOtherNames) {
  const std::vector<std::string> ours{"run.json", "last-actions-1.txt", "checkpoint/manifest.json",
                                      "checkpoint/000004/stage-0.safetensors",
                                      "checkpoint/000008/metrics.safetensors"};
  const std::vector<std::string> others{"notes.txt", "log.txt", "checkpoint/best.pt",
                                        "checkpoint/000008/mine.pt", "checkpoint/000009"};
  for (const auto& names : {ours, others})
    for (const std::string& name : names) put("run/" + name, "");
  folder_.clear();
  for (const std::string& name : ours) EXPECT_FALSE(has(name)) << name;
  for (const std::string& name : others) EXPECT_TRUE(has(name)) << name;
  EXPECT_FALSE(has("checkpoint/000004"));
}

TEST_F(Claims, LinksAreRemovedThemselvesOrRefused) {
  put("mine/000004/stage-0.safetensors", "mine");
  put("mine/steps.csv", "mine");
  fs::create_symlink(root_ / "mine" / "steps.csv", folder_.path() / "steps.csv");
  EXPECT_NE(refusal({.resume = true}).find("/steps.csv: is a symbolic link"), std::string::npos);
  claim(folder_, {.overwrite = true});
  folder_.clear();
  fs::create_symlink(root_ / "mine", folder_.checkpoints());
  EXPECT_NE(refusal({}).find("/checkpoint: is a symbolic link"), std::string::npos);
  claim(folder_, {.overwrite = true});
  folder_.clear();
  EXPECT_FALSE(has("steps.csv") || has("checkpoint"));
  EXPECT_TRUE(fs::exists(root_ / "mine/000004/stage-0.safetensors"));
  EXPECT_TRUE(fs::exists(root_ / "mine/steps.csv"));
}

TEST_F(Claims, OfARunWithoutAMarkerAreForThoseWhoAskForIt) {
  fs::remove(folder_.path() / kFolderMarker);
  put("run/run.json", R"({"state": "done", "digest": "1f", "pipewright": "0.3.0"})");
  EXPECT_NE(refusal({}).find("has 'run.json' in it"), std::string::npos);
  EXPECT_EQ(recorded_state(folder_), "done");
  put("run/run.json", R"({"state": "done", "digest": 1})");
  EXPECT_NE(refusal({.overwrite = true}).find("has 'run.json' in it"), std::string::npos);
  EXPECT_EQ(recorded_state(folder_), "missing");
  put("run/run.json", R"({"state": "failed", "digest": "1f", "pipewright": "0.3.0"})");
  EXPECT_NO_THROW(claim(folder_, {.resume = true}));
  EXPECT_NO_THROW(claim(folder_, {})) << "it is marked now";
}

}  // namespace
}  // namespace pipewright
