# SPDX-License-Identifier: Apache-2.0
"""Reads TensorBoard's event files with the standard library, and refuses those that are damaged."""

import struct


def crc32c(data):
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    number, shift = 0, 0
    while True:
        byte = data[at]
        at, number, shift = at + 1, number | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return number, at


def fields(message):
    """[(number of the field, its value)] of a message of protocol buffers."""
    at, found = 0, []
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(message, at)
            value, at = message[at : at + size], at + size
            assert len(value) == size, "a field is longer than its message"
        found.append((key >> 3, value))
    return found


def records(data):
    while data:
        (size, crc), rest = struct.unpack("<QI", data[:12]), data[12:]
        assert crc == masked(data[:8]), "the length of a record is damaged"
        assert struct.unpack("<I", rest[size : size + 4])[0] == masked(rest[:size]), "a record is damaged"
        yield dict(fields(rest[:size])), fields(rest[:size])
        data = rest[size + 4 :]


def read(path):
    """{tag: [(step, value)]}"""
    events = list(records(path.read_bytes()))
    assert events[0][0][3] == b"brain.Event:2"
    curves = {}
    for event, _ in events[1:]:
        for number, value in fields(event[5]):
            assert number == 1
            value = dict(fields(value))
            curves.setdefault(value[1].decode(), []).append((event[2], struct.unpack("<f", value[2])[0]))
    return curves
