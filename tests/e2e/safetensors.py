# SPDX-License-Identifier: Apache-2.0
"""The safetensors format, read strictly and written plainly.

A file is: the length of the header, 8 bytes little-endian; the header, JSON
{"name": {"dtype": …, "shape": […], "data_offsets": [begin, end]}, "__metadata__": {…}}; the data.
"""

import json
import math
import struct
from collections import namedtuple

Tensor = namedtuple("Tensor", "dtype shape data")
# a BF16 is the upper half of an F32
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1}
CODES = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q", "I32": "i", "U8": "B"}


def read(path):
    """All tensors by name, in the order of their data. A damaged file is a ValueError."""
    content = path.read_bytes()
    if len(content) < 8:
        raise ValueError(f"{path}: shorter than a header")
    length = struct.unpack("<Q", content[:8])[0]
    if 8 + length > len(content):
        raise ValueError(f"{path}: the header is cut off")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    tensors, end = {}, 0
    for name, entry in entries:
        begin, stop = entry["data_offsets"]
        size = math.prod(entry["shape"]) * SIZES[entry["dtype"]]
        if begin != end or stop - begin != size:
            raise ValueError(f"{path}: '{name}' has wrong offsets")
        end = stop
        tensors[name] = Tensor(
            entry["dtype"], entry["shape"], content[8 + length + begin : 8 + length + stop]
        )
    if 8 + length + end != len(content):
        raise ValueError(f"{path}: has {len(content)} bytes, the header describes {8 + length + end}")
    return tensors


def encoded(tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(tensor.data)],
        }
        data += tensor.data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_hole(path, shapes):
    """A whole file of F32 zeros that takes no room on the disk, whatever its size."""
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def tensor(dtype, shape, values):
    return Tensor(dtype, list(shape), struct.pack(f"<{len(values)}{CODES[dtype]}", *values))


def values(tensor):
    return list(
        struct.unpack(f"<{len(tensor.data) // SIZES[tensor.dtype]}{CODES[tensor.dtype]}", tensor.data)
    )


def difference(a, b):
    """What differs, in a few words."""
    if list(a) != list(b):
        return f"names {sorted(set(a) ^ set(b)) or 'in another order'}"
    names = [name for name in a if a[name] != b[name]]
    return f"{len(names)} of {len(a)} tensors, first {names[0]}" if names else "nothing but the header"
