// SPDX-License-Identifier: Apache-2.0
#include "core/exports/protocol_buffer.h"

#include <bit>

namespace pipewright {
namespace {

/// How a field's value is stored: the three lowest bits before it.
enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void append_key(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

}  // namespace

void append_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>((number & 0x7F) | 0x80);
  out += static_cast<char>(number);
}

void append_varint_field(std::string& out, int field, std::uint64_t number) {
  append_key(out, field, Wire::Varint);
  append_varint(out, number);
}

void append_double_field(std::string& out, int field, double number) {
  append_key(out, field, Wire::Fixed64);
  append_fixed(out, std::bit_cast<std::uint64_t>(number));
}

void append_float_field(std::string& out, int field, float number) {
  append_key(out, field, Wire::Fixed32);
  append_fixed(out, std::bit_cast<std::uint32_t>(number));
}

void append_bytes_field(std::string& out, int field, std::string_view bytes) {
  append_key(out, field, Wire::Bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

bool ProtocolFields::next() {
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

std::optional<std::uint64_t> ProtocolFields::varint() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return number;
  }
  return std::nullopt;
}

bool ProtocolFields::read_number() {
  const auto number = varint();
  number_ = number.value_or(0);
  return number.has_value();
}

bool ProtocolFields::read_bytes(std::uint64_t count) {
  if (count > rest_.size()) return false;
  bytes_ = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

}  // namespace pipewright
