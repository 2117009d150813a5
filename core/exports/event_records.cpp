// SPDX-License-Identifier: Apache-2.0
#include "core/exports/event_records.h"

#include <bit>
#include <optional>

#include "core/exports/crc32c.h"

namespace pipewright {
namespace {

/// How a field's value is stored: the three lowest bits before it.
enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;  // of an Event
constexpr int kValue = 1;                                                // of a Summary
constexpr int kTag = 1, kSimpleValue = 2;                                // of a Value
constexpr std::size_t kHead = 12, kFoot = 4;  // bytes of a record around its data

template <class Number>
void append_fixed(std::string& out, Number number) {
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    out += static_cast<char>(number >> (8 * byte) & 0xFF);
}

template <class Number>
Number fixed(std::string_view bytes) {
  Number number = 0;
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[byte])) << (8 * byte);
  return number;
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
void append_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>((number & 0x7F) | 0x80);
  out += static_cast<char>(number);
}

void append_key(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_key(out, field, Wire::Bytes);
  append_varint(out, bytes.size());
  out += bytes;
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
  append_key(event, kWallTime, Wire::Fixed64);
  append_fixed(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

/// Reads the fields of a message one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Moves to the next field; false at the end, or where the message is damaged.
  bool next() {
    const auto key = varint();
    if (!key) return false;
    field_ = static_cast<int>(*key >> 3);
    switch (static_cast<Wire>(*key & 7)) {
      case Wire::Varint: return read_number();
      case Wire::Fixed64: return read_bytes(sizeof(std::uint64_t));
      case Wire::Fixed32: return read_bytes(sizeof(std::uint32_t));
      case Wire::Bytes: break;
      default: return false;
    }
    const auto length = varint();
    return length && read_bytes(*length);
  }

  int field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) return number;
    }
    return std::nullopt;
  }

  bool read_number() {
    const auto number = varint();
    number_ = number.value_or(0);
    return number.has_value();
  }

  bool read_bytes(std::uint64_t count) {
    if (count > rest_.size()) return false;
    bytes_ = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  std::string_view rest_;
  int field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
};

/// The bytes of a message's first field of this number; "" without one.
std::string_view bytes_of(std::string_view message, int field) {
  for (Fields fields(message); fields.next();)
    if (fields.field() == field) return fields.bytes();
  return {};
}

EventPlace place_of(std::string_view event) {
  EventPlace place;
  for (Fields fields(event); fields.next();) {
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

}  // namespace

std::string version_record(double wall_time) {
  std::string event = event_at(wall_time);
  append_bytes(event, kFileVersion, "brain.Event:2");
  return framed(event);
}

std::string event_record(double wall_time, std::int64_t step, std::span<const TaggedValue> values) {
  std::string summary;
  for (const TaggedValue& each : values) {
    std::string value;
    append_bytes(value, kTag, each.tag);
    append_key(value, kSimpleValue, Wire::Fixed32);
    append_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(each.value)));
    append_bytes(summary, kValue, value);
  }
  std::string event = event_at(wall_time);
  append_key(event, kStep, Wire::Varint);
  append_varint(event, static_cast<std::uint64_t>(step));
  append_bytes(event, kSummary, summary);
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

}  // namespace pipewright
