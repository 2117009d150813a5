// SPDX-License-Identifier: Apache-2.0
/// Messages of protocol buffers, as far as the formats that we write need them: fields are appended
/// to a text, and read one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipewright {

/// Little endian, as many bytes as the type has.
template <class Number>
void append_fixed(std::string& out, Number number) {
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    out += static_cast<char>(number >> (8 * byte) & 0xFF);
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
void append_varint(std::string& out, std::uint64_t number);

/// Fields of a message: an integer or a flag; a double; a float; a text, bytes or a message.
void append_varint_field(std::string& out, int field, std::uint64_t number);
void append_double_field(std::string& out, int field, double number);
void append_float_field(std::string& out, int field, float number);
void append_bytes_field(std::string& out, int field, std::string_view bytes);

/// Reads the fields of a message one after the other.
class ProtocolFields {
 public:
  explicit ProtocolFields(std::string_view message) : rest_(message) {}

  /// Moves to the next field; false at the end, or where the message is damaged.
  bool next();

  int field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::optional<std::uint64_t> varint();
  bool read_number();
  bool read_bytes(std::uint64_t count);

  std::string_view rest_;
  int field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace pipewright
