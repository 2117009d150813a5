// SPDX-License-Identifier: Apache-2.0
#include "core/exports/event_records.h"

#include <array>
#include <bit>
#include <optional>

#include "core/exports/protocol_buffer.h"

namespace pipewright {
namespace {

constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;  // of an Event
constexpr int kValue = 1;                                                // of a Summary
constexpr int kTag = 1, kSimpleValue = 2;                                // of a Value
constexpr std::size_t kHead = 12, kFoot = 4;  // bytes of a record around its data

template <class Number>
Number fixed(std::string_view bytes) {
  Number number = 0;
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[byte])) << (8 * byte);
  return number;
}

std::string framed(std::string_view data) {
  std::string record;
  append_fixed<std::uint64_t>(record, data.size());
  append_fixed(record, masked_crc32c(record));
  record += data;
  append_fixed(record, masked_crc32c(data));
  return record;
}

std::string event_at(double wall_time) {
  std::string event;
  append_double_field(event, kWallTime, wall_time);
  return event;
}

/// The bytes of a message's first field of this number; "" without one.
std::string_view bytes_of(std::string_view message, int field) {
  for (ProtocolFields fields(message); fields.next();)
    if (fields.field() == field) return fields.bytes();
  return {};
}

EventPlace place_of(std::string_view event) {
  EventPlace place;
  for (ProtocolFields fields(event); fields.next();) {
    if (fields.field() == kStep) place.step = static_cast<std::int64_t>(fields.number());
    if (fields.field() == kSummary) place.tag = bytes_of(bytes_of(fields.bytes(), kValue), kTag);
  }
  return place;
}

/// The data of the first record; nullopt if that is damaged or incomplete.
std::optional<std::string_view> first_data(std::string_view file) {
  if (file.size() < kHead + kFoot) return std::nullopt;
  const std::string_view length = file.substr(0, sizeof(std::uint64_t));
  if (fixed<std::uint32_t>(file.substr(length.size())) != masked_crc32c(length))
    return std::nullopt;
  const auto size = fixed<std::uint64_t>(length);
  if (size > file.size() - kHead - kFoot) return std::nullopt;
  const std::string_view data = file.substr(kHead, size);
  if (fixed<std::uint32_t>(file.substr(kHead + size)) != masked_crc32c(data)) return std::nullopt;
  return data;
}

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits in reverse order
constexpr std::uint32_t kMask = 0xA282EAD8;
constexpr int kRotation = 15;

/// The contribution of each value of a byte.
constexpr std::array<std::uint32_t, 256> table_of_bytes() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = table_of_bytes();

}  // namespace

std::string version_record(double wall_time) {
  std::string event = event_at(wall_time);
  append_bytes_field(event, kFileVersion, "brain.Event:2");
  return framed(event);
}

std::string event_record(double wall_time, std::int64_t step, std::span<const TaggedValue> values) {
  std::string summary;
  for (const TaggedValue& each : values) {
    std::string value;
    append_bytes_field(value, kTag, each.tag);
    append_float_field(value, kSimpleValue, static_cast<float>(each.value));
    append_bytes_field(summary, kValue, value);
  }
  std::string event = event_at(wall_time);
  append_varint_field(event, kStep, static_cast<std::uint64_t>(step));
  append_bytes_field(event, kSummary, summary);
  return framed(event);
}

std::size_t kept_bytes(std::string_view file, const std::function<bool(const EventPlace&)>& keeps) {
  std::size_t kept = 0;
  while (const auto data = first_data(file.substr(kept))) {
    if (!keeps(place_of(*data))) break;
    kept += kHead + data->size() + kFoot;
  }
  return kept;
}

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char byte : bytes)
    rest = (rest >> 8) ^ kTable[(rest ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~rest;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), kRotation) + kMask;
}

}  // namespace pipewright
