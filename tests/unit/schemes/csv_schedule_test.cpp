// SPDX-License-Identifier: Apache-2.0
// Schedules from PyTorch's CSV files: what they say is what is scheduled, and what is wrong in them
// is named with its line and column.
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/checksum.h"
#include "core/drawing/render.h"
#include "core/schedule/dependencies.h"
#include "core/schedule/prove.h"
#include "core/schedule/slots.h"
#include "core/system/file.h"
#include "tests/unit/schemes/scheme_cases.h"
#include "tests/unit/source_dir.h"

namespace pipewright {
namespace {

std::filesystem::path golden(const std::string& name) {
  return source_dir() / "tests/golden/schedule" / name;
}

std::filesystem::path file_with(const std::string& text) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / concat("pipewright_csv_", ::getpid(), ".csv");
  write_file(path, text);
  return path;
}

Schedule from_file(const std::filesystem::path& path, int stages, int microbatches,
                   int minibatches = 2, int replicas = 1) {
  return schedule_of("csv_schedule", concat("{file: ", path.string(), "}"),
                     {.stages = stages,
                      .replicas = replicas,
                      .microbatches = microbatches,
                      .minibatches = minibatches});
}

std::string refusal(const std::string& text, int stages = 2, int microbatches = 1) {
  try {
    prove(from_file(file_with(text), stages, microbatches));
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(0, what.find('\n'));
  }
  return "accepted";
}

void expect_refused(const std::string& text, const std::string& reason, int stages = 2,
                    int microbatches = 1) {
  const std::string refused = refusal(text, stages, microbatches);
  EXPECT_NE(refused.find(reason), std::string::npos) << refused;
}

TEST(CsvSchedule, RoundTripsPyTorchsFiles) {
  for (const char* name : {"pytorch_interleaved_1f1b.csv", "pytorch_zb1p.csv",
                           "pytorch_looped_bfs.csv", "pytorch_zbv.csv", "pytorch_dualpipev.csv"}) {
    const Schedule schedule = from_file(golden(name), 4, 4);
    EXPECT_NO_THROW(prove(schedule)) << name;
    EXPECT_EQ(render_pytorch_csv(prove(schedule)), read_file(golden(name))) << name;
  }
}

TEST(CsvSchedule, TakesFusedCellsAsFusedPairs) {
  const Schedule schedule = from_file(golden("pytorch_dualpipev.csv"), 4, 4);
  EXPECT_NO_THROW(prove(schedule));
  int pairs = 0;
  for (const auto& actions : schedule.workers)
    for (std::size_t i = 0; i < actions.size(); ++i) {
      EXPECT_EQ(actions[i].with_next, is_fused_pair(actions, i));
      pairs += actions[i].with_next ? 1 : 0;
    }
  EXPECT_EQ(pairs, 2 * 6);
}

/// A forward cannot run beside its own backward, nor two forwards or two backwards.
TEST(CsvSchedule, TakesOtherFusedCellsAsTheirPartsInTurn) {
  const Schedule plain = from_file(file_with("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"), 2, 2);
  const Schedule fused = from_file(file_with("(0F0;0F1)OVERLAP_F_B,(0B0;0B1)OVERLAP_F_B\n"
                                             "1F0,1F1,1B0,(1SEND_B0;1B1)OVERLAP_F_B\n"),
                                   2, 2);
  EXPECT_EQ(fused.workers, plain.workers);
  const Schedule own = from_file(file_with("0F0,0B0\n(1F0;1B0)OVERLAP_F_B\n"), 2, 1);
  EXPECT_EQ(own.workers, from_file(file_with("0F0,0B0\n1F0,1B0\n"), 2, 1).workers);
}

TEST(CsvSchedule, IsTheSchemeItWasWrittenBy) {
  const std::vector<std::pair<std::string, int>> written = {{"gpipe", 3},       {"one_f_one_b", 3},
                                                            {"interleaved", 4}, {"zb_h1", 3},
                                                            {"zb_h2", 3},       {"dualpipe_v", 4}};
  for (const auto& [scheme, stages] : written) {
    const SchemeReading reading(scheme, "{}");
    const PipelineShape shape{.stages = stages,
                              .replicas = 2,
                              .microbatches = 6,
                              .minibatches = 2,
                              .placement = reading.scheme->placement(stages)};
    const Schedule schedule = reading.scheme->schedule(shape);
    const Schedule again =
        from_file(file_with(render_pytorch_csv(prove(schedule))), stages, 6, 2, 2);
    EXPECT_EQ(again.workers, schedule.workers) << scheme;
  }
}

TEST(CsvSchedule, PlacesStagesAsTheFileDoes) {
  const SchemeReading reading("csv_schedule",
                              concat("{file: ", golden("pytorch_zbv.csv").string(), "}"));
  EXPECT_EQ(reading.scheme->placement(4), (std::vector{0, 1, 1, 0}));
}

TEST(CsvSchedule, LeavesIdleCellsAndCommunicationOut) {
  const Schedule plain = from_file(file_with("0F0,0B0\n1F0,1B0\n"), 2, 1);
  for (const char* text :
       {"0F0,,,0B0\n,1F0,1B0\n", "0F0,,,0B0,\r\n,1F0,1B0,\r\n", " 0F0 , 0B0\n1F0,1B0",
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n"})
    EXPECT_EQ(from_file(file_with(text), 2, 1).workers, plain.workers) << text;
}

TEST(CsvSchedule, NamesTheLineAndColumnOfWhatIsWrong) {
  expect_refused("0F0,0B0\n1F0,1X0\n", ":2:5: '1X0' is no action");
  for (const char* cell : {"F0", "0", "0F", "-1F0", "0F-1", "0F0x", "0f0", "0F0 0B0", "9999F0",
                           "0F99999999", "(0F0", "(0F0)OVERLAP_F_B", "(0F0;1Q0)OVERLAP_F_B"})
    expect_refused(concat("0F0,0B0\n1F0,", cell, "\n"), ":2:");
  expect_refused("0F0,0B0\n1F0,(1B0;1Q0)OVERLAP_F_B\n", ":2:10: '1Q0' is no action");
  expect_refused("0F0,0B0\n1F0,1B0,0F1\n",
                 ":2:9: stage 0 is on worker 1 here, but on worker 0 above");
  expect_refused("0F0,0B0\n2F0,2B0\n", "names stage 2 but never stage 1");
  expect_refused("", ":1:1: the file has no action");
  expect_refused("0F0,0B0\n,,\n1F0,1B0\n", ":2:1: this row is empty, so its worker does nothing");
}

TEST(CsvSchedule, HasTheShapeOfItsFile) {
  expect_refused("0F0,0B0\n1F0,1B0\n", "pipeline.stages is 3; ", 3);
  expect_refused("0F0,0B0\n1F0,1B0\n", "pipeline.microbatches is 2; ", 2, 2);
  try {
    schedule_of("csv_schedule", "{}", {});
    FAIL() << "no file was accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("scheme.file"), std::string::npos);
  }
}

TEST(CsvSchedule, NamesAFileThatIsNotThere) {
  try {
    from_file("/no/such/file.csv", 2, 1);
    FAIL() << "a file that is not there was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Data);
    EXPECT_TRUE(error.message().starts_with("/no/such/file.csv: ")) << error.message();
  }
}

TEST(CsvSchedule, IsReadOnceWhateverHappensToTheFileLater) {
  const auto path = file_with("0F0,0B0\n1F0,1B0\n");
  const SchemeReading reading("csv_schedule", concat("{file: ", path.string(), "}"));
  const PipelineShape shape{.stages = 2, .minibatches = 3};
  const Schedule before = reading.scheme->schedule(shape);
  write_file(path, "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  EXPECT_EQ(reading.scheme->schedule(shape).workers, before.workers);
  std::filesystem::remove(path);
  EXPECT_EQ(reading.scheme->schedule(shape).workers, before.workers);
  EXPECT_EQ(reading.scheme->placement(2), (std::vector{0, 1}));
}

TEST(CsvSchedule, KnowsItsFileByTheContent) {
  const std::string text = "0F0,0B0\n1F0,1B0\n";
  const auto path = file_with(text);
  const Value options = parse_yaml(concat("{file: ", path.string(), "}"), "options");
  Problems problems;
  Options read(&options, "scheme", problems);
  Registry<Scheme>::instance().find("csv_schedule")->make(read);
  EXPECT_EQ(read.resolved().find("sha256")->text, sha256(text));
  const auto refused = [&](const std::string& digest) {
    const Value given =
        parse_yaml(concat("{file: ", path.string(), ", sha256: '", digest, "'}"), "options");
    Problems faults;
    Options again(&given, "scheme", faults);
    Registry<Scheme>::instance().find("csv_schedule")->make(again);
    return !faults.empty();
  };
  EXPECT_FALSE(refused(sha256(text)));
  EXPECT_TRUE(refused(sha256(text + "\n")));
}

TEST(CsvSchedule, IsProvedLikeAnyOther) {
  expect_refused("0F0,0B0\n1B0,1F0\n", "can never start");
  expect_refused("0F0\n1F0,1B0\n", "it has no backward of stage 0");
  expect_refused("0F0,0I0\n1F0,1B0\n",
                 "without a weight-only backward, but its stage learns from that loss");
  expect_refused("0F0,0W0\n1F0,1B0\n", "it has no backward of stage 0");
  expect_refused("0F0,0B0,0W0\n1F0,1B0\n", "has no input-only backward of the same pass");
  expect_refused("0F0,0W0,0I0\n1F0,1B0\n", "can never start, because it waits for 0b0");
}

TEST(PyTorchCsv, HasNoWordForStaleWeightsAndAuxiliaryLosses) {
  for (const char* scheme : {"pipedream", "spectrain", "interlocking"})
    EXPECT_THROW(
        render_pytorch_csv(prove(schedule_of(scheme, "{}", {.stages = 3, .minibatches = 4}))),
        Error)
        << scheme;
}

}  // namespace
}  // namespace pipewright
