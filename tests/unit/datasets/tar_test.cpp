// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/archive.h"

#include "datasets/archives/file_tree.h"
#include "tests/unit/datasets/fixtures.h"
#include "tests/unit/datasets/tar_fixture.h"

namespace pipewright {
namespace {

constexpr std::uint64_t kLimit = 1 << 20;
using Files = std::vector<std::pair<std::string, std::string>>;

class Tar : public ::testing::Test {
 protected:
  Files files_of(const std::string& archive) {
    put(path_, archive);
    ArchiveReader reader(path_);
    Files files;
    while (reader.next()) files.emplace_back(reader.name(), reader.content(kLimit));
    return files;
  }
  std::string refusal(const std::string& archive) {
    const std::string error = error_of([&] { files_of(archive); });
    EXPECT_TRUE(error.empty() || contains(error, path_.string()));
    return error;
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.tar.gz";
  const std::string good_ = tar_member("set/", "", '5') + tar_member("set/a.txt", "alpha") +
                            tar_member("./set/b/empty", "") +
                            tar_member("set/c", std::string(1024, 'c')) + tar_end();
  const Files expected_{
      {"set/a.txt", "alpha"}, {"set/b/empty", ""}, {"set/c", std::string(1024, 'c')}};
};

TEST_F(Tar, GivesTheFilesOfPlainAndGzippedArchives) {
  EXPECT_EQ(files_of(good_), expected_);
  EXPECT_EQ(files_of(gzipped(good_)), expected_);
  EXPECT_EQ(files_of(tar_end()), Files());
}

TEST_F(Tar, SkipsWhatNobodyReads) {
  put(path_, gzipped(good_));
  ArchiveReader reader(path_);
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.size(), 1024u);
  EXPECT_EQ(reader.content(1024), std::string(1024, 'c'));
  EXPECT_FALSE(reader.next());
}

TEST_F(Tar, ReadsLongNames) {
  const std::string gnu = std::string(150, 'g') + "/" + std::string(150, 'h'), text(5, 'x');
  EXPECT_EQ(files_of(tar_member("././@LongLink", gnu + '\0', 'L') + tar_member("cut", text) +
                     tar_member("next", "y") + tar_end()),
            (Files{{gnu, text}, {"next", "y"}}));
  const std::string record = " path=" + gnu + "\n";
  const std::string pax = "17 comment=hello\n" + std::to_string(record.size() + 3) + record;
  EXPECT_EQ(files_of(tar_member("PaxHeaders/x", pax, 'x') + tar_member("cut", text) +
                     tar_member("next", "y") + tar_end()),
            (Files{{gnu, text}, {"next", "y"}}));
  std::string header = tar_member("name", "");
  header.replace(345, 6, "folder");
  sign_tar_header(header);
  EXPECT_EQ(files_of(header + tar_end()), (Files{{"folder/name", ""}})) << "ustar's prefix";
}

TEST_F(Tar, ReadsBinarySizes) {
  std::string member = tar_member("big", std::string(700, 'b'));
  std::string header = member.substr(0, 512);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\x02\xbc", 12));
  sign_tar_header(header);
  EXPECT_EQ(files_of(header + member.substr(512) + tar_end()),
            (Files{{"big", std::string(700, 'b')}}));
}

TEST_F(Tar, KeepsNamesOfAllAlphabets) {
  const std::string name = "set/\u6d41\u00e9.txt", pax = "26 path=" + name + "-new\n";
  ASSERT_EQ(pax.size(), 26u);
  EXPECT_EQ(files_of(tar_member(name, "x") + tar_member("PaxHeaders/x", pax, 'x') +
                     tar_member("cut", "y") + tar_member("latin-1 \xe4", "z") + tar_end()),
            (Files{{name, "x"}, {name + "-new", "y"}, {"latin-1 \xe4", "z"}}));
}

TEST_F(Tar, RefusesWhatIsNoFileOfADataSet) {
  for (const char type : {'1', '2', '3', '4', '6', 'D', 'M', 'S', 'Z'})
    EXPECT_TRUE(contains(refusal(tar_member("x", "", type) + tar_end()),
                         "member 'x' is a link or another special file"));
  for (const char* name : {"/etc/passwd", "../x", "a/../../x", "a/.."})
    EXPECT_TRUE(contains(refusal(tar_member(name, "") + tar_end()), "leads out of the archive"));
}

TEST_F(Tar, RefusesFilesLargerThanTheLimit) {
  put(path_, tar_member("big", std::string(1001, 'b')) + tar_end());
  ArchiveReader reader(path_);
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(contains(error_of([&] { reader.content(1000); }),
                       "member 'big' has 1001 bytes, at most 1000 are read"));
  EXPECT_TRUE(contains(refusal(tar_member("x", std::string(2'000'000, 'n'), 'L')), "too large"));
}

TEST_F(Tar, SaysThatAnArchiveIsTruncated) {
  const std::string packed = gzipped(good_);
  for (const std::size_t size : {1u, 511u, 513u, 1030u, 2500u, 3072u})
    EXPECT_TRUE(contains(refusal(good_.substr(0, size)), "truncated")) << size;
  for (std::size_t size = 20; size < packed.size(); ++size)
    EXPECT_NE(refusal(packed.substr(0, size)), "") << size;
  EXPECT_TRUE(contains(refusal(good_.substr(0, good_.size() - tar_end().size())), "truncated"))
      << "between two files";
  EXPECT_NE(refusal(""), "");
  EXPECT_TRUE(contains(error_of([&] { ArchiveReader(folder_ / "absent.tar"); }), "absent.tar"));
}

TEST_F(Tar, NoticesAWrongBitOfHeadersAndOfGzippedContents) {
  for (std::size_t byte = 0; byte < 512; ++byte) {
    std::string changed = good_;
    changed[512 + byte] = static_cast<char>(changed[512 + byte] ^ 1 << byte % 8);
    EXPECT_TRUE(contains(refusal(changed), "checksum") || (byte >= 148 && byte < 156)) << byte;
  }
  const std::string packed = gzipped(good_);
  std::size_t noticed = 0;
  for (std::size_t byte = 10; byte < packed.size(); ++byte) {
    std::string changed = packed;
    changed[byte] = static_cast<char>(changed[byte] ^ 0x10);
    noticed += !error_of([&] { EXPECT_EQ(files_of(changed), expected_) << byte; }).empty();
  }
  EXPECT_GT(2 * noticed, packed.size()) << "zeros may be copies of other zeros";
  EXPECT_NE(refusal("no archive at all" + std::string(1000, 'x')), "");
}

TEST_F(Tar, RefusesDamagedExtensions) {
  const auto extended = [&](const char* records) {
    return refusal(tar_member("p", records, 'x') + tar_member("f", "x") + tar_end());
  };
  for (const char* records : {"x", "99 path=a\n", "3 \n", "0 path=a\n", "-5 path=a\n"})
    EXPECT_TRUE(contains(extended(records), "pax extended attribute")) << records;
  EXPECT_TRUE(contains(extended("11 size=-5\n"), "negative"));
  EXPECT_TRUE(contains(extended("12 size=abc\n"), "wrong checksum or size")) << "as if 0 bytes";
  EXPECT_NE(refusal(tar_member("p", "9 path=a\n", 'x') + tar_end()), "") << "of no file";
}

TEST_F(Tar, AndFoldersAreTreesOfTheFilesWanted) {
  const auto wanted = [](const std::string& name) { return name == "c" ? 0 : 2000; };
  const FileTree tree{{"a.txt", "alpha"}, {"b/empty", ""}};
  put(path_,
      gzipped(good_.substr(0, 512) + tar_member("set/._a.txt", "hidden") + good_.substr(512)));
  EXPECT_EQ(read_tree(path_, wanted, kLimit), tree);
  std::filesystem::create_directories(folder_ / "set/b");
  for (const auto& [name, content] : expected_) put(folder_ / name, content);
  put(folder_ / "set/.hidden", "x");
  EXPECT_EQ(read_tree(folder_ / "set", wanted, kLimit), tree);
  EXPECT_TRUE(contains(error_of([&] { read_tree(folder_ / "set", wanted, 4); }), "'a.txt'"));
  EXPECT_TRUE(contains(error_of([&] {
                         read_tree(
                             path_, [](auto&) { return 4; }, kLimit);
                       }),
                       "'set/a.txt' has 5 bytes"));
}

}  // namespace
}  // namespace pipewright
