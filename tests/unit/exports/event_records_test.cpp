// SPDX-License-Identifier: Apache-2.0
// The bytes of event files, written down by hand from the format in event_records.h.
#include "core/exports/event_records.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/text.h"

namespace pipewright {
namespace {

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xFF);
  return text;
}

std::string framed(const std::string& data) {
  const std::string length = little_endian(data.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + data +
         little_endian(masked_crc32c(data), 4);
}

std::string event(std::int64_t step, const std::string& tag = "loss/train") {
  const std::vector<TaggedValue> values{{tag, 0.25}};
  return event_record(7, step, values);
}

std::size_t kept_up_to(const std::string& file, std::int64_t last) {
  return kept_bytes(file, [&](const EventPlace& place) { return place.step <= last; });
}

TEST(EventRecords, AFileBeginsWithItsVersion) {
  const std::string data = concat(std::string("\x09\0\0\0\0\0\0\xF8\x3F", 9),  // wall_time 1.5
                                  "\x1A\x0D", "brain.Event:2");
  EXPECT_EQ(version_record(1.5), framed(data));
}

TEST(EventRecords, AnEventHasTheBytesOfTheFormat) {
  const std::string data = concat(std::string("\x09\0\0\0\0\0\0\xF8\x3F", 9),  // 1 wall_time: 1.5
                                  "\x10\xAC\x02",                              // 2 step: 300
                                  "\x2A\x1E",                          // 5 summary of 30 bytes
                                  "\x0A\x11",                          // 1 value of 17 bytes
                                  "\x0A\x0A", "loss/train",            // 1 tag of 10 bytes
                                  std::string("\x15\0\0\x20\xC0", 5),  // 2 simple_value: -2.5
                                  "\x0A\x09",                          // 1 value of 9 bytes
                                  "\x0A\x02", "lr",                    // 1 tag of 2 bytes
                                  std::string("\x15\0\0\0\x3F", 5));   // 2 simple_value: 0.5
  const std::vector<TaggedValue> values{{"loss/train", -2.5}, {"lr", 0.5}};
  EXPECT_EQ(event_record(1.5, 300, values), framed(data));
}

TEST(EventRecords, RecordsAreKeptUpToTheFirstThatIsNot) {
  const std::string first = version_record(1), all = first + event(3) + event(300) + event(4);
  EXPECT_EQ(kept_up_to(all, 1000), all.size());
  EXPECT_EQ(kept_up_to(all, 299), first.size() + event(3).size());
  EXPECT_EQ(kept_up_to(all, 2), first.size());
}

TEST(EventRecords, SayTheTagOfTheirFirstNumber) {
  std::vector<std::string> tags;
  kept_bytes(version_record(1) + event(1, "accuracy/test"), [&](const EventPlace& place) {
    tags.push_back(place.tag);
    return true;
  });
  EXPECT_EQ(tags, (std::vector<std::string>{"", "accuracy/test"}));
}

TEST(EventRecords, DamageEndsWhatIsKept) {
  const std::string first = version_record(1), second = event(1), all = first + second + event(2);
  for (std::size_t byte = first.size(); byte < first.size() + second.size(); ++byte) {
    std::string damaged = all;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 1);
    EXPECT_EQ(kept_up_to(damaged, 9), first.size()) << byte;
  }
  for (std::size_t bytes = first.size(); bytes < first.size() + second.size(); ++bytes)
    EXPECT_EQ(kept_up_to(all.substr(0, bytes), 9), first.size()) << bytes;
  EXPECT_EQ(kept_up_to("", 9), 0U);
  // A length that no file has, with the right check behind it.
  const std::string length = little_endian(~std::uint64_t{0} - 3, 8);
  EXPECT_EQ(kept_up_to(length + little_endian(masked_crc32c(length), 4) + "data", 9), 0U);
}

TEST(EventRecords, AMessageThatIsNoEventIsReadToItsEnd) {
  for (const char* const data : {"\x0B", "\x10", "\x10\xFF\xFF", "\x2A\x7Fx", "\x2A\x02\x0A\x7F"})
    EXPECT_EQ(kept_up_to(framed(data), 9), framed(data).size());
}

}  // namespace
}  // namespace pipewright
