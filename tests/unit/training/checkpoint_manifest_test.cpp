// SPDX-License-Identifier: Apache-2.0
// What a manifest says is read back, and numbers that no checkpoint can have are refused.
#include "core/training/checkpoint_manifest.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/config/json.h"
#include "core/system/file.h"
#include "tests/unit/records/run_folders.h"

namespace pipewright::test {
namespace {

class Manifests : public RunFolders {
 protected:
  /// Writes the manifest of a checkpoint with one file, with such numbers and the right checksum.
  void write(std::int64_t epochs, std::int64_t replica) const {
    const CheckpointManifest manifest{.minibatches = 12, .identity = "same", .files = {{}}};
    commit_manifest(root_, manifest);
    Value value = parse_json(read_file(root_ / "manifest.json"), "written");
    value.at_or_add("epochs") = Value::of(epochs);
    value.at_or_add("files").items[0].at_or_add("replica") = Value::of(replica);
    std::erase_if(value.fields, [](const auto& field) { return field.first == "checksum"; });
    value.at_or_add("checksum") = Value::of(digest(value));
    write_file(root_ / "manifest.json", to_json(value));
  }
  std::string refusal(std::int64_t epochs, std::int64_t replica) const {
    write(epochs, replica);
    const FoundManifest found = find_manifests(root_).at(0);
    EXPECT_FALSE(found.manifest.has_value());
    return found.damage ? found.damage->what() : "";
  }
};

TEST_F(Manifests, CountEpochsAndReplicasUpToTheLargestInt) {
  constexpr int kMost = std::numeric_limits<int>::max();
  write(kMost, kMost);
  const auto manifest = read_manifest(root_);
  EXPECT_EQ(manifest->epochs, kMost);
  EXPECT_EQ(manifest->files.at(0).replica, kMost);
}

TEST_F(Manifests, WithNumbersThatNoIntHoldsAreDamaged) {
  const std::string is_none =
      (root_ / "manifest.json").string() + ": is no manifest of a checkpoint: ";
  for (const std::int64_t number :
       {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1, std::int64_t{-1}}) {
    EXPECT_TRUE(refusal(number, 0).starts_with(is_none + "'epochs' is ")) << refusal(number, 0);
    EXPECT_TRUE(refusal(3, number).starts_with(is_none + "'replica' is ")) << refusal(3, number);
  }
}

}  // namespace
}  // namespace pipewright::test
