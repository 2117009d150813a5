// SPDX-License-Identifier: Apache-2.0
#include "datasets/archives/gzip.h"

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

class Gzip : public ::testing::Test {
 protected:
  std::string unpacked(const std::string& packed, std::uint64_t limit = 1 << 20) {
    put(path_, packed);
    return read_gzip(path_, limit);
  }
  std::string refusal(const std::string& packed, std::uint64_t limit = 1 << 20) {
    return error_of([&] { unpacked(packed, limit); });
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.gz";
};

std::string text_of_size(std::size_t size) {
  std::string text(size, '\0');
  const RandomStream stream(1, "gzip test");
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(stream.bits(i));
  return text;
}

TEST_F(Gzip, UnpacksWhatWasPacked) {
  for (const std::size_t size : {0, 1, 100, 70'000}) {
    const std::string text = text_of_size(size);
    EXPECT_EQ(unpacked(gzipped(text)), text) << size;
  }
}

TEST_F(Gzip, UnpacksAllMembers) {
  EXPECT_EQ(unpacked(gzipped("one ") + gzipped("two")), "one two");
}

TEST_F(Gzip, ReadsAsMuchAsTheLimitAndNoMore) {
  const std::string packed = gzipped(std::string(1000, 'x'));
  EXPECT_EQ(unpacked(packed, 1000).size(), 1000u);
  EXPECT_TRUE(contains(refusal(packed, 999), "unpacks to more than 999 bytes"));
  EXPECT_TRUE(contains(refusal(packed + packed, 1000), "unpacks to more than 1000 bytes"));
}

TEST_F(Gzip, RefusesABomb) {
  const std::string bomb = gzipped(std::string(std::size_t{64} << 20, '\0'));
  ASSERT_LT(bomb.size(), 400'000u);
  EXPECT_TRUE(contains(refusal(bomb), "unpacks to more than 1048576 bytes"));
}

TEST_F(Gzip, NamesTheFileAndWhereItEnds) {
  const std::string packed = gzipped(text_of_size(5000));
  for (const std::size_t size : {2u, 9u, 10u, 2000u, 4998u}) {
    const std::string error = refusal(packed.substr(0, size));
    EXPECT_TRUE(contains(error, "truncated gzip data")) << size;
    EXPECT_TRUE(contains(error, path_.string()));
  }
  EXPECT_TRUE(contains(refusal(packed.substr(0, packed.size() - 1)), "ends after 5000 unpacked"));
}

TEST_F(Gzip, GivesTheContentOrAnErrorWhateverBitIsWrong) {
  const std::string text = text_of_size(200);
  const std::string packed = gzipped(text);
  int noticed = 0;
  for (std::size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    std::string changed = packed;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    const std::string error = error_of([&] { EXPECT_EQ(unpacked(changed), text) << bit; });
    noticed += !error.empty();
  }
  EXPECT_GT(noticed, 8 * 200) << "only unused bits, the time and the system may be anything";
}

TEST_F(Gzip, RefusesOtherFiles) {
  EXPECT_TRUE(contains(refusal(""), "is not a gzip file"));
  EXPECT_TRUE(contains(refusal("plain text"), "is not a gzip file"));
  EXPECT_TRUE(contains(refusal(gzipped("text") + "more"), "4 bytes follow the gzip data"));
  EXPECT_TRUE(contains(error_of([&] { read_gzip(folder_ / "absent.gz", 10); }), "absent.gz"));
}

}  // namespace
}  // namespace pipewright
