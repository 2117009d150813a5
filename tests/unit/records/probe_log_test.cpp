// SPDX-License-Identifier: Apache-2.0
// What is read of probes.csv.
#include "core/records/probe_log.h"

#include "core/base/error.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright {
namespace {

class ProbeLog : public RunFolders {
 protected:
  LastProbeValues read(const std::string& rows, std::string_view quantity = "largest") const {
    const auto file = put("run/probes.csv", concat(std::string_view(kProbeHeader), "\n", rows));
    return last_probe_values(file.parent_path(), "sharpness", quantity);
  }
};

TEST_F(ProbeLog, GivesTheLastValueOfEachStage) {
  const LastProbeValues last = read(
      "0,0,0,sharpness,largest,1.5\n"
      "0,0,0,norms,gradient,77\n"
      "0,9,0,sharpness,largest,2.5\n"
      "0,9,1,sharpness,largest,3\n"
      "0,9,,sharpness,largest,4.5\n"
      "0,9,0,sharpness,preconditioned,99\n");
  EXPECT_EQ(last.stages, (std::map<int, double>{{0, 2.5}, {1, 3}}));
  EXPECT_EQ(last.model, 4.5);
}

TEST_F(ProbeLog, GivesTheQuantityThatIsAskedFor) {
  const char* rows = "0,0,0,sharpness,largest,1.5\n0,0,0,sharpness,preconditioned,9\n";
  EXPECT_EQ(read(rows, "preconditioned").stages, (std::map<int, double>{{0, 9}}));
}

TEST_F(ProbeLog, ALineThatIsBeingWrittenIsNotRead) {
  EXPECT_EQ(read("0,0,0,sharpness,largest,1.5\n0,9,0,sharpness,lar").stages,
            (std::map<int, double>{{0, 1.5}}));
}

TEST_F(ProbeLog, ThatIsDamagedIsNamedWithItsLine) {
  for (const char* rows : {"0,0,0,sharpness,largest\n", "0,0,0,sharpness,largest,x\n",
                           "0,0,0.5,sharpness,largest,1\n"}) {
    try {
      read(rows);
      ADD_FAILURE() << rows << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data);
      EXPECT_TRUE(error.where().find(".csv:2:") != std::string::npos) << error.where();
    }
  }
}

}  // namespace
}  // namespace pipewright
