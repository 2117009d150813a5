// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/archive.h"

#include "datasets/archives/file_tree.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// Written by Python's zipfile: folder set/, set/a.txt stored, set/b/c.txt deflated, a comment.
const std::string kArchive = bytes_of(
    "504b030414000000000000002150000000000000000000000000040000007365742f504b030414000000000000"
    "0021506a39e0d00500000005000000090000007365742f612e747874616c706861504b03041400000008000000"
    "215043c8625c070000002c0100000b0000007365742f622f632e7478744b4e1e05c40200504b01021403140000"
    "000000000021500000000000000000000000000400000000000000000000008001000000007365742f504b0102"
    "1403140000000000000021506a39e0d00500000005000000090000000000000000000000800122000000736574"
    "2f612e747874504b010214031400000008000000215043c8625c070000002c0100000b00000000000000000000"
    "0080014e0000007365742f622f632e747874504b05060000000003000300a20000007e0000000700636f6d6d65"
    "6e74");

class Zip : public ::testing::Test {
 protected:
  FileTree tree_of(const std::string& archive) {
    put(path_, archive);
    return read_tree(
        path_, [](const std::string&) { return 1000; }, 2000);
  }
  std::string refusal(const std::string& archive) {
    return error_of([&] { EXPECT_EQ(tree_of(archive), expected_); });
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.zip";
  const FileTree expected_{{"a.txt", "alpha"}, {"b/c.txt", std::string(300, 'c')}};
};

TEST_F(Zip, GivesStoredAndDeflatedFiles) {
  EXPECT_EQ(tree_of(kArchive), expected_);
}

TEST_F(Zip, RefusesFilesLargerThanTheLimit) {
  put(path_, kArchive);
  ArchiveReader reader(path_);
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(contains(error_of([&] { reader.content(4); }), "'set/a.txt' has 5 bytes, at most 4"));
}

TEST_F(Zip, RefusesWhatIsNoFileOfADataSet) {
  const auto with = [](std::size_t at, const std::string& bytes) {
    std::string changed = kArchive;
    return changed.replace(at, bytes.size(), bytes);
  };
  const std::size_t local = kArchive.find("PK\x03\x04", 4), packed = kArchive.rfind("PK\x03\x04"),
                    first = kArchive.find("PK\x01\x02"),
                    central = kArchive.find("PK\x01\x02", first + 4),
                    last = kArchive.rfind("PK\x01\x02");
  EXPECT_TRUE(contains(refusal(with(local + 6, "\1")), "encrypted"));
  EXPECT_TRUE(contains(refusal(with(central + 8, "\1")), "encrypted"));
  EXPECT_TRUE(contains(refusal(with(packed + 8, "\x0c")), "otherwise than stored or deflated"));
  EXPECT_TRUE(contains(refusal(with(central + 40, std::string("\xff\xa1", 2))), "link"));
  EXPECT_TRUE(contains(refusal(with(local + 30, "../")), "leads out"));
  EXPECT_TRUE(
      contains(refusal(with(last + 16, std::string(4, '\1'))), "'set/b/c.txt' does not unpack"));
}

TEST_F(Zip, GivesTheContentOrAnErrorWhateverIsWrong) {
  int noticed = 0;
  for (std::size_t byte = 4; byte < kArchive.size(); ++byte) {
    std::string changed = kArchive;
    changed[byte] = static_cast<char>(changed[byte] ^ 1 << byte % 8);
    error_of([&] {
      try {
        for (const auto& [name, content] : tree_of(changed))
          EXPECT_TRUE(content.empty() || content == "alpha" || content == std::string(300, 'c'))
              << byte << ": names have no checksum, so a folder may become an empty file";
      } catch (...) {
        ++noticed;
        throw;
      }
    });
  }
  EXPECT_GT(noticed, 60);
  for (std::size_t size = 4; size + 7 < kArchive.size(); ++size)
    EXPECT_NE(refusal(kArchive.substr(0, size)), "") << size;
  EXPECT_TRUE(contains(error_of([&] { ArchiveReader(folder_ / "absent.zip"); }), "absent.zip"));
}

}  // namespace
}  // namespace pipewright
