// SPDX-License-Identifier: Apache-2.0
#include "core/codecs/frame.h"

#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"

namespace pipewright {
namespace {

constexpr std::size_t kFixed = 16;
constexpr std::array<std::uint8_t, 3> kStart{'P', 'w', 1};
constexpr std::uint8_t kRaw = 1;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::Data, concat("a compressed message is damaged: ", what));
}

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <class Number>
void put(std::span<std::byte> bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

}  // namespace

void check_sizes(const FrameHeader& header) {
  std::int64_t room = kLargestFrame / size_of(header.type);
  for (const std::int64_t size : header.sizes) {
    if (size < 0) refuse(concat("a dimension is ", size));
    if (size > 0 && size > room) refuse("its dimensions are too large");
    if (size > 0) room /= size;
  }
}

void check_values(const FrameHeader& header, std::int64_t most) {
  if (header.values() > most)
    refuse(concat("it stands for ", header.values(), " values, where at most ", most, " cross"));
}

std::int64_t FrameHeader::values() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::uint16_t codec_tag(std::string_view name) {
  return static_cast<std::uint16_t>(stable_hash(name));
}

int size_of(FrameType type) {
  constexpr std::array<int, 4> kSizes{4, 8, 2, 2};
  return kSizes[static_cast<std::size_t>(type)];
}

void write_header(const FrameHeader& header, std::span<std::byte> into) {
  PIPEWRIGHT_CHECK(header.sizes.size() <= kMostDimensions, "a tensor of ", header.sizes.size(),
                   " dimensions");
  std::memcpy(into.data(), kStart.data(), kStart.size());
  put(into, 3, header.type);
  put(into, 4, static_cast<std::uint8_t>(header.raw ? kRaw : 0));
  put(into, 5, static_cast<std::uint8_t>(header.sizes.size()));
  put(into, 6, header.codec);
  put(into, 8, header.payload);
  if (!header.sizes.empty())
    std::memcpy(into.data() + kFixed, header.sizes.data(), 8 * header.sizes.size());
}

FrameHeader read_header(std::span<const std::byte> frame) {
  if (frame.size() < kFixed) refuse(concat("it has ", frame.size(), " bytes"));
  if (std::memcmp(frame.data(), kStart.data(), kStart.size()) != 0)
    refuse("it does not begin as one of this version");
  const auto type = number_at<std::uint8_t>(frame, 3), flags = number_at<std::uint8_t>(frame, 4),
             rank = number_at<std::uint8_t>(frame, 5);
  if (type > static_cast<std::uint8_t>(FrameType::BFloat16)) refuse("its type is unknown");
  if ((flags & ~kRaw) != 0) refuse("its flags are unknown");
  if (rank > kMostDimensions || frame.size() < kFixed + 8 * std::size_t{rank})
    refuse(concat("it has ", frame.size(), " bytes for ", int{rank}, " dimensions"));
  FrameHeader header{.codec = number_at<std::uint16_t>(frame, 6),
                     .type = static_cast<FrameType>(type),
                     .raw = flags != 0,
                     .sizes = std::vector<std::int64_t>(rank),
                     .payload = number_at<std::int64_t>(frame, 8)};
  if (rank > 0) std::memcpy(header.sizes.data(), frame.data() + kFixed, 8 * std::size_t{rank});
  check_sizes(header);
  if (header.payload < 0 || static_cast<std::uint64_t>(header.payload) !=
                                frame.size() - static_cast<std::size_t>(header.bytes()))
    refuse(concat("its payload has ", frame.size() - static_cast<std::size_t>(header.bytes()),
                  " bytes instead of ", header.payload));
  if (header.raw && header.payload != header.values() * size_of(header.type))
    refuse("raw values and dimensions do not fit");
  return header;
}

}  // namespace pipewright
