// SPDX-License-Identifier: Apache-2.0
#include "core/tensor_files/safetensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/system/file.h"

namespace pipewright {
namespace {

constexpr std::array kTypes{at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                            at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

/// A file of this header and data, its length field right.
std::string bytes_of(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

class Safetensors : public ::testing::Test {
 protected:
  Safetensors() {
    std::string name = (std::filesystem::temp_directory_path() / "pipewright-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "x.safetensors";
  }
  ~Safetensors() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& bytes) {
    std::filesystem::remove(path_);  // a file cut and written again may be synced by the system
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  TensorFile read(const std::string& bytes) {
    put(bytes);
    return read_safetensors(path_);
  }
  /// The text of the Error{Data}, which names the file; "" when the bytes are accepted.
  std::string refusal(const std::string& bytes) {
    try {
      read(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Data) << error.what();
      EXPECT_EQ(error.where(), path_.string());
      return error.what();
    }
    return {};
  }
  void expect_refused(const std::string& header, const std::string& data, const std::string& why) {
    const std::string error = refusal(bytes_of(header, data));
    EXPECT_NE(error.find(why), std::string::npos) << header << "\n  gives: '" << error << "'";
  }

  std::filesystem::path folder_, path_;
};

void expect_equal_files(const TensorFile& a, const TensorFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const auto& [name, tensor] = a.tensors[i];
    EXPECT_EQ(name, b.tensors[i].first);
    EXPECT_EQ(tensor.scalar_type(), b.tensors[i].second.scalar_type());
    EXPECT_EQ(tensor.sizes(), b.tensors[i].second.sizes());
    if (tensor.numel() > 0) {
      EXPECT_EQ(std::memcmp(tensor.contiguous().const_data_ptr(),
                            b.tensors[i].second.contiguous().const_data_ptr(), tensor.nbytes()),
                0)
          << name;
    }
  }
}

TEST_F(Safetensors, AHeaderOfMoreBytesThanANumberCanHaveIsNoNegativeOne) {
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_NE(refusal(bytes + "{}")
                  .find("it announces a header of more than "
                        "9,223,372,036,854,775,807 bytes and has only 10"),
              std::string::npos);
  }
}

TEST_F(Safetensors, ReadsBytesWrittenByHand) {
  const std::string header =
      R"({"b":{"dtype":"I16","shape":[3],"data_offsets":[4,10]},)"
      R"("a":{"data_offsets":[0,4],"shape":[1,1],"dtype":"F32"},)"
      R"("__metadata__":{"by":"hand"},"c":{"dtype":"BOOL","shape":[],"data_offsets":[10,11]}}  )";
  const TensorFile file = read(bytes_of(
      header, std::string("\x00\x00\x20\xc1", 4) + std::string("\x01\x00\xff\xff\x00\x01\x01", 7)));
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[0].first, "a") << "in the order of the data";
  EXPECT_TRUE(file.find("a")->equal(at::full({1, 1}, -10, at::kFloat)));
  EXPECT_TRUE(file.find("b")->equal(at::tensor({1, -1, 256}, at::kShort)));
  EXPECT_TRUE(file.find("c")->equal(at::full({}, true, at::kBool)));
  EXPECT_EQ(file.find("d"), nullptr);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"by", "hand"}}));
}

TEST_F(Safetensors, WritesTheseBytes) {
  TensorFile file;
  file.tensors = {{"b", at::tensor({1, -2}, at::kShort)}, {"a\n", at::full({}, 7, at::kByte)}};
  file.metadata = {{"z", "1"}, {"format", "pt"}};
  write_safetensors(path_, file);
  std::string header = R"({"__metadata__":{"format":"pt","z":"1"},)"
                       R"("b":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                       R"("a\n":{"dtype":"U8","shape":[],"data_offsets":[4,5]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(read_file(path_), bytes_of(header, std::string("\x01\x00\xfe\xff\x07", 5)));
}

TEST_F(Safetensors, KeepsEveryTypeAndShapeThroughAFile) {
  TensorFile file;
  file.metadata = {{"empty", ""}, {"text", "\"quoted\" \\ \u00e9 \u4e2d \x01"}};
  for (const at::ScalarType type : kTypes) {
    const std::string name = c10::toString(type);
    file.tensors.emplace_back(name, at::arange(-10, 14).to(type).reshape({2, 3, 4}));
    file.tensors.emplace_back(name + " scalar", at::full({}, 1, type));
    file.tensors.emplace_back(name + " of nothing", at::empty({3, 0, 5}, type));
  }
  file.tensors.emplace_back("transposed", at::arange(12, at::kFloat).reshape({3, 4}).t());
  file.tensors.emplace_back("\u00fcber.weight/0", at::full({1}, NAN));
  write_safetensors(path_, file);
  const TensorFile back = read_safetensors(path_);
  expect_equal_files(file, back);
  const std::vector<TensorHeader> headers = read_safetensors_header(path_);
  ASSERT_EQ(headers.size(), back.tensors.size());
  for (std::size_t i = 0; i < headers.size(); ++i) {
    EXPECT_EQ(headers[i].name, back.tensors[i].first);
    EXPECT_EQ(headers[i].shape, back.tensors[i].second.sizes().vec());
    EXPECT_EQ(headers[i].type, back.tensors[i].second.scalar_type());
  }
  const std::string bytes = read_file(path_);
  write_safetensors(path_, back);
  EXPECT_EQ(read_file(path_), bytes) << "equal content gives equal bytes";
}

TEST_F(Safetensors, KeepsAFileWithoutTensors) {
  write_safetensors(path_, {});
  EXPECT_EQ(read_file(path_), bytes_of("{}      "));
  EXPECT_TRUE(read_safetensors(path_).tensors.empty());
}

TEST_F(Safetensors, GivesFreshAlignedTensors) {
  TensorFile file;
  for (int i = 1; i < 20; ++i)
    file.tensors.emplace_back("t" + std::to_string(i), at::ones({i}, at::kByte));
  write_safetensors(path_, file);
  for (const auto& [name, tensor] : read_safetensors(path_).tensors) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64, 0u) << name;
    EXPECT_EQ(tensor.storage_offset(), 0);
    EXPECT_EQ(tensor.storage().nbytes(), tensor.nbytes());
  }
}

TEST_F(Safetensors, RefusesTruncatedFilesAtEveryByte) {
  const std::string whole =
      bytes_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "01234567");
  EXPECT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
  EXPECT_NE(refusal(whole + "8").find("8 bytes of data, but the file has 9"), std::string::npos);
}

TEST_F(Safetensors, RefusesHeaderLengthsBeforeTakingMemory) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::uint64_t{1} << 62, ~std::uint64_t{0},
        ~std::uint64_t{7}}) {
    std::string bytes = bytes_of("{}");
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_NE(refusal(bytes).find("a header of"), std::string::npos) << length;
  }
}

TEST_F(Safetensors, RefusesWhatIsNotItsJson) {
  expect_refused("", "", "is not JSON");
  expect_refused(" {}", "", "is not JSON");
  expect_refused("\xef\xbb\xbf{}", "", "is not JSON");
  expect_refused("[]", "", "is not JSON");
  expect_refused("{} {}", "", "is not JSON at byte");
  expect_refused(std::string("{}\0}", 4), "", "is not JSON");
  expect_refused("{\"\xff\":{}}", "", "is not JSON at byte");
  expect_refused("{,}", "", "is not JSON at byte");
  expect_refused("{/**/}", "", "is not JSON at byte");
  expect_refused("{'a':1}", "", "is not JSON at byte");
  expect_refused("{" + std::string(100'000, '['), "", "is not JSON at byte");
  expect_refused("{\"a\":" + std::string(100'000, '['), "", "a list stands where none is expected");
  for (const std::string value : {"1", "null", "true", "\"x\"", "[]", "-1", "0.5"})
    expect_refused("{\"a\":" + value + "}", "", "where none is expected, after 'a'");
  for (const std::string value : {"1", "null", "{}", "[]"})
    expect_refused("{\"__metadata__\":{\"a\":" + value + "}}", "",
                   "where none is expected, after 'a'");
}

TEST_F(Safetensors, RefusesWhatAppearsTwiceOrIsNotThere) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_refused("{" + a + "," + a + "}", "x", "'a' appears twice");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", "", "'__metadata__' appears twice");
  expect_refused(R"({"__metadata__":{"k":"1","k":"1"}})", "", "metadata 'k' appears twice");
  expect_refused(R"({"a":{"dtype":"U8","dtype":"U8"}})", "", "two dtype");
  expect_refused(R"({"a":{"shape":[],"shape":[]}})", "", "two shape");
  expect_refused(R"({"a":{"data_offsets":[],"data_offsets":[]}})", "", "two data_offsets");
  expect_refused(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x", "'a' has no dtype");
  expect_refused(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x", "'a' has no shape");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1]}})", "x", "'a' has no data_offsets");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":[1]}})", "x", "a list");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":"1"}})", "x", "a text");
}

TEST_F(Safetensors, RefusesTensorsThatDoNotFit) {
  const auto tensor = [](const std::string& type, const std::string& shape,
                         const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
           offsets + "]}}";
  };
  expect_refused(tensor("F8", "1", "0,1"), "x",
                 "type 'F8' is not supported; expected one of F64, F32");
  expect_refused(tensor("f32", "1", "0,4"), "xxxx", "type 'f32'");
  expect_refused(tensor("F32", "2", "0,4"), "xxxx",
                 "has 4 bytes of data; its shape and type need 8");
  expect_refused(tensor("F32", "", "0,0"), "", "need 4");
  expect_refused(tensor("F32", "0", "0,4"), "xxxx", "need 0");
  expect_refused(tensor("U8", "1", "1,2"), "xx", "begin at byte 1, but those before it end at 0");
  expect_refused(tensor("U8", "1", "0,1"), "xx", "describes 1 byte of data, but the file has 2");
  expect_refused(tensor("U8", "1", "1,0"), "x", "begin <= end");
  for (const std::string offsets : {"", "0", "0,1,1"})
    expect_refused(tensor("U8", "1", offsets), "x", "data_offsets must be [begin, end]");
  expect_refused(tensor("U8", "-1", "0,1"), "x", "a negative number");
  expect_refused(tensor("U8", "1.0", "0,1"), "x", "a number that is not whole or too large");
  expect_refused(tensor("U8", "[1]", "0,1"), "x", "a list");
  expect_refused(tensor("BOOL", "2", "0,2"), std::string("\x01\x02"), "neither 0 nor 1");
  const std::string huge = "9223372036854775807";
  const std::vector<std::string> shapes{huge + ",2", huge + "," + huge, "18446744073709551615",
                                        "4294967296,4294967296", "0," + huge + "," + huge};
  for (const std::string& shape : shapes)
    expect_refused(tensor("U8", shape, "0,0"), "", "more elements than can be counted");
  expect_refused(tensor("F64", huge, "0,0"), "", "more elements than can be counted");
  expect_refused(tensor("U8", "1e3", "0,1"), "x", "a number that is not whole or too large");
  expect_refused(tensor("U8", "99999999999999999999", "0,1"), "x",
                 "a number that is not whole or too large");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_refused(tensor("U8", ones, "0,1"), "x", "shape has more than 64 numbers");
  EXPECT_EQ(refusal(bytes_of(tensor("U8", ones.substr(2), "0,1"), "x")), "");
}

TEST_F(Safetensors, RefusesHolesAndOverlaps) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[)" + a +
           R"(]},"b":{"dtype":"U8","shape":[2],"data_offsets":[)" + b + "]}}";
  };
  EXPECT_EQ(refusal(bytes_of(two("2,4", "0,2"), "xxxx")), "");
  expect_refused(two("0,2", "0,2"), "xx",
                 "'b': its data begin at byte 0, but those before it end at 2");
  expect_refused(two("0,2", "1,3"), "xxx", "'b': its data begin at byte 1");
  expect_refused(two("0,2", "3,5"), "xxxxx", "'b': its data begin at byte 3");
  expect_refused(two("18446744073709551614,18446744073709551615", "0,2"), "xx", "'a'");
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                 R"("z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
                 "xx", "'z': its data begin at byte 1");
}

TEST_F(Safetensors, RefusesWhatIsNoFile) {
  EXPECT_THROW(read_safetensors(folder_ / "absent"), Error);
  EXPECT_THROW(read_safetensors(folder_), Error);
  EXPECT_THROW(read_safetensors("/dev/zero"), Error);
}

TEST_F(Safetensors, NeverWritesWhatItCouldNotRead) {
  const at::Tensor t = at::ones({1});
  const auto write = [&](std::vector<std::pair<std::string, at::Tensor>> tensors) {
    TensorFile file;
    file.tensors = std::move(tensors);
    write_safetensors(path_, file);
  };
  EXPECT_THROW(write({{"a", t}, {"a", t}}), Error);
  EXPECT_THROW(write({{"__metadata__", t}}), Error);
  EXPECT_THROW(write({{"a", t.to(at::kComplexFloat)}}), Error);
  EXPECT_THROW(write({{"\xff", t}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

/// Damage of the kinds that files meet, and of the kinds that somebody makes on purpose.
std::string damaged(std::string bytes, const RandomStream& stream) {
  static const std::vector<std::string> kPieces{"0",
                                                "1",
                                                "9223372036854775807",
                                                "18446744073709551615",
                                                "-1",
                                                "1e9",
                                                "[",
                                                "]",
                                                "{",
                                                "}",
                                                ",",
                                                "\"",
                                                "\"a\":",
                                                "\"__metadata__\":{",
                                                "null",
                                                "\"dtype\":\"BOOL\",",
                                                "\"shape\":[0,8]",
                                                "\\",
                                                "\\u0000",
                                                "\xc3",
                                                std::string(1, '\0'),
                                                std::string(300, '['),
                                                " "};
  const std::uint64_t changes = 1 + stream.below(0, 3);
  for (std::uint64_t i = 1; i <= 4 * changes; i += 4) {
    const std::size_t at = stream.below(i, bytes.size());
    switch (stream.below(i + 1, 5)) {
      case 0: bytes[at] = static_cast<char>(stream.bits(4 * (i + 2))); break;
      case 1: bytes.erase(at, 1 + stream.below(i + 2, 8)); break;
      case 2: bytes.insert(at, kPieces[stream.below(i + 2, kPieces.size())]); break;
      case 3: bytes.insert(at, bytes.substr(stream.below(i + 2, bytes.size()), 40)); break;
      default: bytes[stream.below(i + 2, 8)] = static_cast<char>(stream.bits(4 * (i + 3))); break;
    }
    if (bytes.size() < 8) return bytes;
    // Mostly with the right length, or little but the check of the length would be tested.
    const std::uint64_t length = bytes.find_first_not_of(' ', bytes.rfind("}}") + 2) - 8;
    if (stream.below(i + 3, 4) != 0 && length < bytes.size()) std::memcpy(bytes.data(), &length, 8);
  }
  return bytes;
}

TEST_F(Safetensors, GivesAnErrorOrAWholeFileWhateverTheBytes) {
  TensorFile file;
  file.metadata = {{"format", "pt"}};
  file.tensors = {{"a", at::arange(4, at::kFloat)},
                  {"b", at::ones({2, 3}, at::kBool)},
                  {"c", at::empty({0, 4}, at::kLong)},
                  {"d", at::full({}, 3, at::kByte)}};
  write_safetensors(path_, file);
  const std::string whole = read_file(path_);
  int accepted = 0, refused = 0;
  for (std::uint64_t i = 0; i < 8'000; ++i) {
    const std::string bytes = damaged(whole, RandomStream(1, "safetensors mutations", i));
    try {
      const TensorFile back = read(bytes);
      std::uint64_t size = 0;
      for (const auto& [name, tensor] : back.tensors) {
        size += tensor.nbytes();
        ASSERT_EQ(tensor.clone().numel(), tensor.numel());  // touches every byte
      }
      ASSERT_LT(size, bytes.size());
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Data) << "mutation " << i << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 4'000);
  EXPECT_GT(accepted, 200) << "the mutations should not all be coarse";
}

}  // namespace
}  // namespace pipewright
