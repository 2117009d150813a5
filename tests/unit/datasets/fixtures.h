// SPDX-License-Identifier: Apache-2.0
/// Helpers for tests of data sets, which alone include it: data sets made from YAML, temporary
/// folders, gzip files, files of MNIST's format, and the folder of real data.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/nn/dataset.h"
#include "core/system/file.h"
#include "tests/unit/skips.h"
#include "tests/unit/source_dir.h"

namespace pipewright::fixtures {

/// A new, empty folder, which is removed with its content at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pipewright-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string text() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Writes a file without sync, unlike write_file(), because tests write thousands.
inline void put(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// The content compressed as one gzip member.
inline std::string gzipped(std::string_view content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()), '\0');
  std::string in(content);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// The data set with the options of a YAML mapping in flow style, as an experiment would make it.
inline std::unique_ptr<Dataset> make_dataset(const std::string& name, const std::string& yaml) {
  const Registry<Dataset>::Entry* entry = Registry<Dataset>::instance().find(name);
  if (entry == nullptr) throw Error(ErrorKind::Bug, "no data set " + name);
  const Value mapping = parse_scalar(yaml, "test");
  Problems problems;
  Options options(&mapping, "dataset", problems);
  std::unique_ptr<Dataset> dataset = entry->make(options);
  options.finish();
  problems.throw_if_any();
  return dataset;
}

/// The text of the error that `action` throws, which must be of this kind; "" if it throws none.
inline std::string error_of(const std::function<void()>& action, ErrorKind kind = ErrorKind::Data) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return {};
}

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

inline std::vector<std::int64_t> first_indices(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

template <class T>
std::vector<T> values_of(const at::Tensor& tensor) {
  const T* data = tensor.const_data_ptr<T>();
  return {data, data + tensor.numel()};
}

/// A file of MNIST's format with these words in front; value i is i mod 10.
inline std::string idx(std::initializer_list<std::uint32_t> header, std::size_t values) {
  std::string file;
  for (const std::uint32_t word : header)
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(word >> shift & 255);
  for (std::size_t i = 0; i < values; ++i) file += static_cast<char>(i % 10);
  return file;
}

/// A test of a data set whose files lie in a folder of their own.
class DatasetFiles : public ::testing::Test {
 protected:
  /// `always` are options that every test gives, such as "size: 8".
  explicit DatasetFiles(std::string name, std::string always = "")
      : name_(std::move(name)), always_(std::move(always)) {}

  /// Writes a file, and makes the folders that it is in.
  void write(const std::string& name, std::string_view content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    put(folder_ / name, content);
  }
  /// The data set at `place` in the folder, with more options.
  std::unique_ptr<Dataset> made(const std::string& more = "", const std::string& place = "") const {
    std::string options = concat("{root: '", folder_.text(), place, "'");
    for (const std::string& some : {always_, more})
      if (!some.empty()) options += ", " + some;
    return make_dataset(name_, options + "}");
  }
  std::unique_ptr<Dataset> opened(const std::string& more = "",
                                  const std::string& place = "") const {
    auto data = made(more, place);
    data->open({});
    return data;
  }
  /// Why it cannot be opened; "" if it can.
  std::string refusal(const std::string& more = "", ErrorKind kind = ErrorKind::Data) const {
    return error_of([&] { opened(more); }, kind);
  }
  /// What is said, with its name, of a file that has another content for a moment.
  std::string damaged(const std::string& name, const std::string& content) {
    const std::string before = read_file(folder_ / name);
    put(folder_ / name, content);
    const std::string error = refusal();
    put(folder_ / name, before);
    EXPECT_TRUE(contains(error, (folder_ / name).string()));
    return error;
  }

  TemporaryFolder folder_;

 private:
  std::string name_, always_;
};

inline std::filesystem::path real_data(const std::string& folder) {
  return source_dir() / "../shared/data" / folder;
}

}  // namespace pipewright::fixtures

namespace pipewright {
using namespace fixtures;
}

/// Skips the test if that folder of real data does not exist.
#define PIPEWRIGHT_NEEDS_REAL_DATA(folder)                                 \
  if (!std::filesystem::exists(::pipewright::fixtures::real_data(folder))) \
  PIPEWRIGHT_LACKS("real-data") << "there is nothing at "                  \
                                << ::pipewright::fixtures::real_data(folder)
