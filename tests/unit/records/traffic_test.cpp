// SPDX-License-Identifier: Apache-2.0
// traffic.csv: what a run writes, and the metrics that tables make of it.
#include "core/records/run_folder.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

constexpr double kMiB = 1024 * 1024;

/// Two stages of two replicas after 10 mini-batches in 4 s; both stages' gradients are compressed.
std::vector<TrafficRow> two_stages() {
  const auto row = [](EdgeTraffic edge, int from, int to) {
    return TrafficRow{
        .edge = edge, .from_worker = from, .to_worker = to, .minibatches = 10, .seconds = 4};
  };
  return {
      row({.from = 0,
           .to = 1,
           .messages = 20,
           .value_bytes = 8 * kMiB,
           .sent_bytes = 2 * kMiB,
           .encode_seconds = 0.5,
           .decode_seconds = 0.25},
          0, 2),
      row({.from = 1, .to = 0, .messages = 20, .value_bytes = 8 * kMiB, .sent_bytes = 8 * kMiB}, 2,
          0),
      row({.from = 0, .to = 0, .messages = 20, .value_bytes = 40 * kMiB, .sent_bytes = 10 * kMiB},
          0, 0),
      row({.from = 1, .to = 1, .messages = 20, .value_bytes = 60 * kMiB, .sent_bytes = 20 * kMiB},
          2, 2)};
}

class TrafficFile : public RunFolders {
 protected:
  void write(const std::vector<TrafficRow>& rows) const {
    std::filesystem::create_directories(root_ / "r");
    RunFolder(root_ / "r").write_traffic(rows);
  }
  RunRecord read() const { return run("r", "r", "done", "{name: x}", accuracies({"0.5", "0.75"})); }
};

TEST_F(TrafficFile, HasARowForEveryEdgeAndForEveryStagesSums) {
  write(two_stages());
  EXPECT_EQ(read_file(root_ / "r" / "traffic.csv"),
            "from,to,from_worker,to_worker,minibatches,messages,value_bytes,sent_bytes,ratio,"
            "encode_seconds,decode_seconds,train_seconds,required_bytes_per_second,kind\n"
            "0,1,0,2,10,20,8388608,2097152,0.25,0.5,0.25,4,524288,forward\n"
            "1,0,2,0,10,20,8388608,8388608,1,0,0,4,2097152,backward\n"
            "0,0,0,0,10,20,41943040,10485760,0.25,,,4,2621440,reduce\n"
            "1,1,2,2,10,20,62914560,20971520,0.3333333333333333,,,4,5242880,reduce\n");
}

TEST_F(TrafficFile, SumsAreMetricsOfTheirOwn) {
  write(two_stages());
  const RunRecord with = read();
  EXPECT_EQ(metric_of(with, "reduced_ratio", "last"), 0.3);
  EXPECT_EQ(metric_of(with, "reduced_mib", "last"), 3);
  std::vector<TrafficRow> edges = two_stages();
  edges.resize(2);
  write(edges);
  const RunRecord without = read();
  EXPECT_FALSE(metric_of(without, "reduced_ratio", "last"));
  for (const RunRecord& run : {with, without}) {
    EXPECT_EQ(metric_of(run, "sent_ratio", "last"), 0.625);
    EXPECT_EQ(metric_of(run, "sent_mib", "last"), 1);
    EXPECT_EQ(metric_of(run, "required_mib_per_s", "last"), 2.5);
    EXPECT_EQ(metric_of(run, "codec_share", "last"), 0.75 / 4);
  }
}

TEST_F(TrafficFile, OfOneStageHasItsSumsAlone) {
  write({two_stages()[2]});
  const RunRecord run = read();
  EXPECT_EQ(metric_of(run, "reduced_ratio", "last"), 0.25);
  EXPECT_FALSE(metric_of(run, "sent_ratio", "last"));
}

TEST_F(TrafficFile, WithoutKindsIsReadToo) {
  put("r/traffic.csv",
      "from,to,from_worker,to_worker,minibatches,messages,value_bytes,sent_bytes,ratio,"
      "encode_seconds,decode_seconds,train_seconds,required_bytes_per_second\n"
      "0,1,0,1,10,20,1000,250,0.25,0,0,4,62.5\n");
  EXPECT_EQ(metric_of(read(), "sent_ratio", "last"), 0.25);
}

}  // namespace
}  // namespace pipewright
