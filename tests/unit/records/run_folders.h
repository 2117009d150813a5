// SPDX-License-Identifier: Apache-2.0
/// Run folders written by a test, as runs would write them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/records/run_record.h"
#include "core/system/file.h"

namespace pipewright {

/// A new, empty folder for one test, which is removed at the end.
class RunFolders : public testing::Test {
 protected:
  RunFolders() {
    std::string name = (std::filesystem::temp_directory_path() / "pipewright-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~RunFolders() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::filesystem::path put(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path;
  }

  /// Writes a run of that state. `varied` and `config` are YAML, `epochs` is the text of
  /// epochs.csv.
  RunRecord run(const std::string& folder, const std::string& label, const std::string& state,
                const std::string& config, const std::string& epochs = {},
                const std::string& varied = "{}") const {
    write_point(root_ / folder, {0, label, parse_yaml(varied, "varied"), {}, {}});
    if (state != "missing") {
      put(folder + "/run.json", R"({"state": ")" + state + R"(", "digest": "00ff", "error": ""})");
      put(folder + "/experiment.yaml", config + "\n");
    }
    if (!epochs.empty()) put(folder + "/epochs.csv", epochs);
    RunRecord record = read_run(root_ / folder);
    if (state == "missing") record.config = parse_yaml(config, "config");
    return record;
  }

  std::filesystem::path root_;
};

/// The text of epochs.csv with the accuracies of epochs 0, 1, …; "" for an epoch without
/// evaluation.
inline std::string accuracies(const std::vector<std::string>& values) {
  std::string text = "epoch,train_loss,test_loss,test_accuracy,lr,seconds,samples_per_second\n";
  for (std::size_t i = 0; i < values.size(); ++i)
    text += concat(i, ",0.5,0.25,", values[i], ",0.1,2,1000\n");
  return text;
}

}  // namespace pipewright
