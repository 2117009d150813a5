// SPDX-License-Identifier: Apache-2.0
// Files of CIFAR's records, with one label and with two. A second reading of the format says which
// are whole and have labels of the data set's classes; just these are taken, with their pixels.
#include "datasets/images/cifar.h"

#include <array>
#include <optional>

#include "core/base/random.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace pipewright::fuzz {
namespace {

constexpr std::size_t kMostRecords = 3;
constexpr std::array<CifarLabel, 2> kKinds{
    {{.labels = 1, .position = 0, .classes = 10}, {.labels = 2, .position = 1, .classes = 100}}};

/// The images of the file, or nothing where it is none.
std::optional<ByteImages> images_in(std::string_view bytes, const CifarLabel& kind) {
  const std::size_t record = kind.labels + kCifarPixels;
  if (bytes.empty() || bytes.size() % record != 0 || bytes.size() > kMostRecords * record)
    return {};
  ByteImages images;
  for (; !bytes.empty(); bytes.remove_prefix(record)) {
    const auto label = static_cast<std::uint8_t>(bytes[kind.position]);
    if (label >= kind.classes) return {};
    images.labels.push_back(label);
    for (const char pixel : bytes.substr(kind.labels, kCifarPixels))
      images.pixels.push_back(static_cast<std::uint8_t>(pixel));
  }
  return images;
}

ByteImages read_kind(const std::filesystem::path& folder, const CifarLabel& kind) {
  const std::size_t record = kind.labels + kCifarPixels;
  const OfficialFile file{.name = "records.bin",
                          .size_in_bytes = kMostRecords * record,
                          .origin = "a fuzzer",
                          .record_in_bytes = record};
  OfficialFiles files(folder, "none.tar.gz", {file});
  ByteImages images;
  append_cifar_records(files, file, kind, images);
  return images;
}

std::string read(std::string_view bytes) {
  static const ScratchFolder folder;
  folder.write("records.bin", bytes);
  std::optional<Error> refusal;
  for (const CifarLabel& kind : kKinds) {
    const std::optional<ByteImages> expected = images_in(bytes, kind);
    try {
      const ByteImages images = read_kind(folder.path(), kind);
      require(expected && images.labels == expected->labels && images.pixels == expected->pixels,
              "other images are read than are there");
      return concat(
          kind.labels, ' ', images.size(), ' ',
          stable_hash({reinterpret_cast<const char*>(images.pixels.data()), images.pixels.size()}));
    } catch (const Error& error) {
      require(!expected, concat("records are refused: ", error.what()));
      if (!refusal) refusal = error;
    }
  }
  throw *refusal;
}

std::size_t most_memory(std::string_view bytes) {
  return (1 << 16) + 16 * bytes.size();
}

}  // namespace

const Target kTarget{.read = read,
                     .most_memory = most_memory,
                     .most_bytes = (kMostRecords + 1) * (2 + kCifarPixels),
                     .rounds = 5000};

}  // namespace pipewright::fuzz
