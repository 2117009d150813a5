// SPDX-License-Identifier: Apache-2.0
// NumPy's files. The headers are what numpy.save writes, typed here; conformance/arrays_test.py
// reads files that NumPy itself has written.
#include "datasets/arrays/npy.h"

#include <ATen/ATen.h>

#include "tests/unit/datasets/fixtures.h"

namespace pipewright {
namespace {

/// A file of version 1 with that dictionary, padded to a multiple of 64 as NumPy does.
std::string npy(std::string header, const std::string& data, const std::string& version = {1, 0}) {
  const std::size_t before = version[0] == 1 ? 10 : 12;
  header.resize((header.size() + before + 64) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string length;
  for (std::size_t i = 0; i < before - 8; ++i)
    length += static_cast<char>(header.size() >> (8 * i) & 255);
  return "\x93NUMPY" + version + length + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

const std::string kDoubles = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
const std::vector<double> kSix{0, 1, 2, 3, 4, 5};

class Npy : public ::testing::Test {
 protected:
  at::Tensor array(const std::string& file) {
    put(path_, file);
    return read_npy(path_);
  }
  std::string refusal(const std::string& file) {
    const std::string error = error_of([&] { array(file); });
    EXPECT_TRUE(error.starts_with(path_.string() + ": ")) << error;
    return error;
  }
  std::string refusal_of(const std::string& header, std::size_t bytes = 48) {
    return refusal(npy(header, std::string(bytes, '\0')));
  }

  fixtures::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.npy";
};

TEST_F(Npy, GivesTheArrayOfEveryVersion) {
  for (const char version : {'\1', '\2', '\3'}) {
    const at::Tensor x = array(npy(kDoubles, raw(kSix), {version, 0}));
    EXPECT_EQ(x.scalar_type(), at::kDouble);
    EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(values_of<double>(x), kSix);
  }
}

TEST_F(Npy, TurnsFortransOrderAround) {
  const at::Tensor x =
      array(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", raw(kSix)));
  EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(values_of<double>(x), (std::vector<double>{0, 2, 4, 1, 3, 5}));
}

TEST_F(Npy, ReadsEveryTypeOfNumbers) {
  const auto one = [](const std::string& descr) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }";
  };
  EXPECT_EQ(values_of<float>(array(npy(one("<f4"), raw<float>({1.5F, -2})))),
            (std::vector<float>{1.5F, -2}));
  EXPECT_EQ(values_of<std::int64_t>(array(npy(one("<i8"), raw<std::int64_t>({1, -2})))),
            (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(values_of<std::int32_t>(array(npy(one("<i4"), raw<std::int32_t>({1, -2})))),
            (std::vector<std::int32_t>{1, -2}));
  EXPECT_EQ(values_of<std::int16_t>(array(npy(one("<i2"), raw<std::int16_t>({1, -2})))),
            (std::vector<std::int16_t>{1, -2}));
  EXPECT_EQ(values_of<std::int8_t>(array(npy(one("|i1"), raw<std::int8_t>({1, -2})))),
            (std::vector<std::int8_t>{1, -2}));
  EXPECT_EQ(values_of<std::uint8_t>(array(npy(one("|u1"), raw<std::uint8_t>({1, 255})))),
            (std::vector<std::uint8_t>{1, 255}));
  EXPECT_EQ(array(npy(one("|b1"), std::string("\0\1", 2))).scalar_type(), at::kBool);
  EXPECT_EQ(array(npy(one("<f2"), std::string("\0\x3c\0\xc0", 4))).to(at::kFloat)[1].item<float>(),
            -2);  // 0xc000
}

TEST_F(Npy, TakesKeysInAnyOrderAndASingleNumber) {
  EXPECT_EQ(array(npy("{\"shape\":(),\"fortran_order\":False,\"descr\":\"<f8\"}", raw<double>({7})))
                .item<double>(),
            7);
}

TEST_F(Npy, RefusesWhatItNeverLoadsByName) {
  const auto of_type = [&](const std::string& descr) {
    return refusal_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': (6,), }");
  };
  EXPECT_TRUE(contains(of_type("'|O'"), "Python objects, which are pickled and never loaded"));
  EXPECT_TRUE(contains(of_type("'>f8'"), "big-endian"));
  EXPECT_TRUE(contains(of_type("'<c16'"), "'<c16'; expected floats"));
  EXPECT_TRUE(contains(of_type("'<U4'"), "'<U4'; expected floats"));
  EXPECT_TRUE(contains(of_type("'<u8'"), "'<u8'; expected floats"));
  EXPECT_TRUE(contains(of_type("[('a', '<f8')]"), "several fields"));
  EXPECT_TRUE(contains(of_type("''"), "''; expected floats"));
}

TEST_F(Npy, RefusesHeadersThatAreNone) {
  EXPECT_TRUE(contains(refusal("PK\x03\x04"), "does not begin with"));
  EXPECT_TRUE(contains(refusal("\x93NUMPY\x01"), "truncated"));
  EXPECT_TRUE(contains(refusal(npy(kDoubles, raw(kSix), {4, 0})), "version 4.0"));
  EXPECT_TRUE(contains(refusal(npy(kDoubles, raw(kSix), {1, 1})), "version 1.1"));
  EXPECT_TRUE(contains(refusal(std::string("\x93NUMPY\2\0\0\0\0\x7f", 12)),
                       "announces a header of 2,130,706,432 bytes"));
  EXPECT_TRUE(contains(refusal(npy(kDoubles, "").substr(0, 60)), "header is incomplete"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'shape': (6,), }"), "no 'fortran_order'"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'descr': '<f8', }"), "'descr' twice"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'more': 1, }"), "key 'more'"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'fortran_order': 1, 'shape': (6,)}"),
                       "'False' is expected"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'fortran_order': False, 'shape': (6)}"),
                       "behind the only size"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'fortran_order': False, 'shape': (-6,)}"),
                       "a size is expected"));
  EXPECT_TRUE(contains(refusal_of("{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} x"),
                       "the end of the header"));
  EXPECT_TRUE(contains(refusal_of("__import__('os').abort()"), "'{' is expected"));
}

TEST_F(Npy, TakesNoMemoryForMoreThanTheFileHolds) {
  const auto of_shape = [&](const std::string& shape) {
    return refusal_of("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }");
  };
  EXPECT_TRUE(contains(of_shape("(7,)"), "has 48 bytes of data; expected more"));
  EXPECT_TRUE(contains(of_shape("(5,)"), "has 48 bytes of data; expected 40 bytes"));
  EXPECT_TRUE(contains(of_shape("(4611686018427387904, 4, 6)"), "expected more"));
  EXPECT_TRUE(contains(of_shape("(99999999999999999999,)"), "a size is expected"));
  EXPECT_TRUE(contains(of_shape("(0, 6)"), "without a number"));
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  EXPECT_TRUE(contains(of_shape(many + ")"), "more than 64 dimensions"));
}

TEST_F(Npy, RefusesTruthValuesThatAreNeither) {
  EXPECT_TRUE(
      contains(refusal(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\1\2")),
               "neither 0 nor 1"));
}

TEST_F(Npy, GivesAnArrayOrAnErrorWhateverIsWrong) {
  const std::string right = npy(kDoubles, raw(kSix));
  for (std::size_t byte = 0; byte < right.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = right;
      changed[byte] = static_cast<char>(changed[byte] ^ 1 << bit);
      put(path_, changed);
      error_of([&] { EXPECT_EQ(read_npy(path_).nbytes(), 48U) << byte; });
    }
  for (std::size_t length = 0; length < right.size(); ++length)
    EXPECT_NE(refusal(right.substr(0, length)), "") << length;
}

/// A zip archive of stored members, as numpy.savez writes; `announced` is the size of each where it
/// lies.
std::string npz(const std::vector<std::pair<std::string, std::string>>& members,
                std::uint32_t announced = 0) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
    return text;
  };
  std::string file, directory;
  for (const auto& [name, content] : members) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::uint64_t size = announced > 0 ? announced : content.size();
    const std::string common = number(20, 2) + number(0, 2) + number(announced > 0 ? 8 : 0, 2) +
                               number(0, 4) + number(crc, 4) + number(content.size(), 4) +
                               number(size, 4) + number(name.size(), 2) + number(0, 2);
    directory +=
        "PK\1\2" + number(20, 2) + common + std::string(10, '\0') + number(file.size(), 4) + name;
    file += "PK\3\4" + common + name + content;
  }
  const std::string end = "PK\5\6" + number(0, 4) + number(members.size(), 2) +
                          number(members.size(), 2) + number(directory.size(), 4) +
                          number(file.size(), 4) + number(0, 2);
  return file + directory + end;
}

class Npz : public Npy {
 protected:
  Npz() { path_ = folder_ / "data.npz"; }
  std::string refusal(const std::string& file) {
    put(path_, file);
    return error_of([&] { read_npz(path_); });
  }
};

TEST_F(Npz, GivesArraysByTheirNames) {
  const std::string x = npy(kDoubles, raw(kSix)),
                    y = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                            raw<std::int64_t>({1, 0}));
  put(path_, npz({{"x_train.npy", x}, {"y_train.npy", y}}));
  const auto arrays = read_npz(path_);
  ASSERT_EQ(arrays.size(), 2U);
  EXPECT_EQ(arrays[0].first, "x_train");
  EXPECT_EQ(values_of<double>(arrays[0].second), kSix);
  EXPECT_EQ(values_of<std::int64_t>(arrays[1].second), (std::vector<std::int64_t>{1, 0}));
}

TEST_F(Npz, NamesTheArrayAtFault) {
  const std::string x = npy(kDoubles, raw(kSix));
  EXPECT_TRUE(contains(refusal(npz({{"x.npy", x}, {"readme.txt", "x"}})),
                       "member 'readme.txt' is no array"));
  EXPECT_TRUE(contains(refusal(npz({{"x.npy", x}, {"x.npy", x}})), "array 'x' is there twice"));
  EXPECT_TRUE(contains(refusal(npz({{"x.npy", x.substr(0, 150)}})), "array 'x': has 22 bytes"));
  EXPECT_TRUE(contains(refusal(npz({{"x.npy", x}}).substr(0, 100)), "truncated"));
}

TEST_F(Npz, TakesNoMemoryForAZipBomb) {
  EXPECT_TRUE(contains(refusal(npz({{"x.npy", npy(kDoubles, raw(kSix))}}, 4'000'000'000)),
                       "announces more bytes than a file of"));
}

}  // namespace
}  // namespace pipewright
