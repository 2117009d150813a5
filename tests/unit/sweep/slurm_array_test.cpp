// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/slurm_array.h"

#include "tests/unit/config/error_text.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

/// A run that keeps `cores` busy, with `processes` of MPI, on `gpus`.
PlannedRun planned(const std::string& title, int cores = 1, int processes = 0, int gpus = 0) {
  return {{.resolved = Value::mapping(), .cores = cores, .processes = processes, .gpus = gpus},
          1,
          title,
          title,
          Value::mapping(),
          "/sweep/" + title};
}

std::string script(const std::vector<PlannedRun>& runs, const std::string& folder = "/sweep") {
  return array_script(runs, folder + "/slurm/1", {.name = "x", .program = "/bin/pipewright"});
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(SlurmArray, ATaskTakesItsPointsInOrder) {
  const std::vector<ArrayPoint> points =
      array_points({planned("a"), planned("b"), planned("c")}, 2);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1].task, 1);
  EXPECT_EQ(points[2].task, 2);
  EXPECT_EQ(points[2].folder, "c");
}

TEST(SlurmArray, ThreadsOfAWorkerShareATaskOfSlurm) {
  const std::string text = script({planned("a", 2), planned("b", 6)});
  EXPECT_TRUE(has_line(text, "#SBATCH --ntasks=1")) << text;
  EXPECT_TRUE(has_line(text, "#SBATCH --cpus-per-task=6")) << text;
}

TEST(SlurmArray, ProcessesOfMpiAreTasksOfSlurm) {
  const std::string text = script({planned("a", 8, 4), planned("b", 2, 2)});
  EXPECT_TRUE(has_line(text, "#SBATCH --ntasks=4")) << text;
  EXPECT_TRUE(has_line(text, "#SBATCH --cpus-per-task=2")) << text;
}

TEST(SlurmArray, GpusOfOneProcessAreOnItsNode) {
  const std::string text = script({planned("a"), planned("b", 4, 0, 4), planned("c", 2, 2, 2)});
  EXPECT_TRUE(has_line(text, "#SBATCH --gres=gpu:4")) << text;
  EXPECT_EQ(text.find("--gpus"), std::string::npos) << text;
}

TEST(SlurmArray, GpusOfProcessesMayBeOnSeveralNodes) {
  const std::string text = script({planned("a", 8, 8, 8), planned("b", 1)});
  EXPECT_TRUE(has_line(text, "#SBATCH --gpus=8")) << text;
  EXPECT_EQ(text.find("--gres"), std::string::npos) << text;
}

TEST(SlurmArray, WithoutGpusNoneAreAskedFor) {
  EXPECT_EQ(script({planned("a", 4), planned("b", 2, 2)}).find("gpu"), std::string::npos);
}

TEST(SlurmArray, GpusThatTheUserAsksForAreNotAskedForTwice) {
  for (const std::string option : {"-p x --gres=gpu:a100:2", "--gpus=1", "-G 1", "-G1"}) {
    const std::string text =
        array_script({planned("a", 4, 0, 4)}, "/sweep/slurm/1",
                     {.name = "x", .program = "/bin/pipewright", .options = {option}});
    EXPECT_TRUE(has_line(text, "#SBATCH " + option)) << text;
    EXPECT_EQ(text.find("gpu:4"), std::string::npos) << text;
  }
}

TEST(SlurmArray, PercentSignsOfAFolderAreNoPattern) {
  const std::string text = script({planned("a")}, "/a %j \"b\"");
  EXPECT_TRUE(has_line(text, "#SBATCH --output=\"/a %%j \\\"b\\\"/slurm/1/task-%a.log\"")) << text;
  EXPECT_TRUE(has_line(text, "sweep='/a %j \"b\"'")) << text;
}

TEST(SlurmArray, ATitleStaysInItsField) {
  PlannedRun run = planned("a");
  run.title = "a\tb\nc";
  EXPECT_EQ(array_points({run}, 1).front().title, "a b c");
}

TEST(SlurmArray, AFolderThatSbatchCannotBeToldIsRefused) {
  EXPECT_NE(error_text([] { script({planned("a")}, "/a\nb"); }).find("no line breaks"),
            std::string::npos);
}

using PointsFile = RunFolders;

TEST_F(PointsFile, ReadsWhatItWrites) {
  const std::vector<ArrayPoint> points = array_points({planned("a b"), planned("c", 4, 4)}, 1);
  const std::vector<ArrayPoint> read = read_points(put("points.tsv", points_text(points)));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].title, "a b");
  EXPECT_EQ(read[1].task, 2);
  EXPECT_EQ(read[1].folder, "c");
}

TEST_F(PointsFile, DamageIsNamedByItsLine) {
  for (const std::string line : {"1\tfolder", "one\tfolder\ttitle"}) {
    try {
      read_points(put("points.tsv", "1\ta\ta\n" + line + "\n"));
      FAIL() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_EQ(error.where(), (root_ / "points.tsv").string() + ":2");
    }
  }
}

}  // namespace
}  // namespace pipewright
