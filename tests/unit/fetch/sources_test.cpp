// SPDX-License-Identifier: Apache-2.0
// The table of what `pipewright fetch` downloads: that it fits the data sets, and real files.
#include "core/fetch/sources.h"

#include <set>

#include "core/system/file_checksum.h"
#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

using fixtures::contains;
using fixtures::error_of;
using fixtures::make_dataset;

/// Where the data set looks when it is told nothing.
std::filesystem::path default_root(const std::string& name) {
  Problems problems;
  Options options(nullptr, "dataset", problems);
  Registry<Dataset>::instance().find(name)->make(options);
  return options.resolved().find("root")->text;
}

TEST(Sources, BelongToDataSetsEachToOne) {
  std::set<std::string> seen;
  for (const Source& source : sources()) {
    EXPECT_NE(Registry<Dataset>::instance().find(source.dataset), nullptr) << source.dataset;
    EXPECT_TRUE(seen.insert(source.dataset).second) << source.dataset;
    EXPECT_EQ(find_source(source.dataset), &source);
  }
  EXPECT_TRUE(seen.contains("cifar10"));
  EXPECT_EQ(find_source("digits"), nullptr);  // is built in
}

TEST(Sources, GoWhereTheDataSetLooks) {
  for (const Source& source : sources()) {
    const std::filesystem::path folder = resolved_path(source.folder, ".");
    EXPECT_EQ(default_root(source.dataset),
              source.dataset == "food101" ? folder / "food-101" : folder);
  }
}

TEST(Sources, AreComplete) {
  for (const Source& source : sources()) {
    EXPECT_TRUE(source.home.starts_with("http")) << source.dataset;
    for (const SourceFile& file : source.files) {
      EXPECT_TRUE(file.address.starts_with("http://") || file.address.starts_with("https://"));
      EXPECT_TRUE(file.address.ends_with("/" + file.name)) << file.address;
      EXPECT_EQ(file.name.find(".."), std::string::npos);
      EXPECT_GT(file.size_in_bytes, 0U);
      EXPECT_TRUE(file.checksum.size() == 32 || file.checksum.size() == 64) << file.name;
      EXPECT_EQ(file.checksum.find_first_not_of("0123456789abcdef"), std::string::npos);
    }
  }
}

TEST(Sources, AMissingFileSaysWhatFetchesIt) {
  const fixtures::TemporaryFolder folder;
  for (const Source& source : sources()) {
    if (source.files.empty()) continue;
    const auto data = make_dataset(source.dataset, "{root: '" + (folder / "none").string() + "'}");
    EXPECT_TRUE(contains(error_of([&] { data->open({}); }),
                         ", or PIPEWRIGHT_DATA to the folder of all data sets; `pipewright fetch " +
                             source.dataset + "` downloads " + source.title));
  }
  EXPECT_EQ(fetch_advice("cola"), "");
  EXPECT_EQ(fetch_advice("digits"), "");
}

void expect_real_files(const std::string& dataset, const std::string& folder) {
  for (const SourceFile& file : find_source(dataset)->files) {
    const std::filesystem::path path = fixtures::real_data(folder) / file.name;
    EXPECT_EQ(std::filesystem::file_size(path), file.size_in_bytes) << path;
    EXPECT_EQ(file_checksum(
                  path, file.checksum.size() == 32 ? Checksum::Kind::Md5 : Checksum::Kind::Sha256),
              file.checksum)
        << path;
  }
}

TEST(Sources, KnowTheRealFashionMnist) {
  PIPEWRIGHT_NEEDS_REAL_DATA("fashion-mnist");
  expect_real_files("fashion_mnist", "fashion-mnist");
}

TEST(Sources, KnowTheRealTinyShakespeare) {
  PIPEWRIGHT_NEEDS_REAL_DATA("tinyshakespeare");
  expect_real_files("text", "tinyshakespeare");
}

TEST(Sources, KnowTheRealMulti30k) {
  PIPEWRIGHT_NEEDS_REAL_DATA("multi30k");
  expect_real_files("translation", "multi30k");
}

}  // namespace
}  // namespace pipewright
