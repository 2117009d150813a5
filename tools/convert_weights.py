#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch checkpoint (.pt, .pth) into safetensors, for `model.weights`.

    tools/convert_weights.py resnet18-f37072fd.pth [resnet18.safetensors] [--key state_dict] [--strip module.]

No code of the checkpoint runs, unlike with older versions of `torch.load`: its pickle may name tensors,
their storages and ordered dictionaries, for which this file has stand-ins; anything else is refused.
Needs Python 3.9 and nothing else. Checkpoints are zip archives since PyTorch 1.6.

Exit codes: 0 fine, 2 wrong arguments, 3 the checkpoint is missing, damaged or refused.
"""

import argparse
import collections
import io
import itertools
import json
import math
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path

PICKLE_LIMIT = 256 << 20  # bytes, enough for a model with a million tensors

# PyTorch's name of a storage type: safetensors' name of the element type, bytes per element.
STORAGES = {
    "DoubleStorage": ("F64", 8),
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}
UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}  # memoryview formats by element size; elements are copied, never interpreted


class Refused(Exception):
    """The reason why a checkpoint is refused, in one line."""


StorageType = collections.namedtuple("StorageType", "dtype bytes")
Storage = collections.namedtuple("Storage", "type key elements")


class Tensor(collections.namedtuple("Tensor", "storage offset shape strides")):
    """A view of a storage: [i, j, …] is its element offset + i·strides[0] + j·strides[1] + …"""

    __slots__ = ()

    @property
    def bytes(self):
        return math.prod(self.shape) * self.storage.type.bytes

    def check(self):
        numbers = (self.offset, *self.shape, *self.strides)
        if not isinstance(self.storage, Storage) or len(self.shape) != len(self.strides):
            raise Refused("a tensor is not described as PyTorch does")
        if any(type(number) is not int or number < 0 for number in numbers):
            raise Refused("a tensor has a shape or stride that is not a number from 0")
        last = self.offset + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides))
        if math.prod(self.shape) > self.storage.elements:
            raise Refused(f"a tensor of shape {list(self.shape)} has more elements than its storage")
        if math.prod(self.shape) > 0 and last >= self.storage.elements:
            raise Refused(f"a tensor of shape {list(self.shape)} reaches beyond its storage")

    def runs(self, content):
        """Yields the bytes of the elements in order, in pieces."""
        elements = memoryview(content).cast(UNSIGNED[self.storage.type.bytes])
        outer, inner = self.dense_dimensions()
        length = math.prod(self.shape[outer:])
        if inner is not None:  # the last dimension alone, with a stride
            length = self.shape[-1]
        for index in itertools.product(*map(range, self.shape[:outer])):
            begin = self.offset + sum(i * stride for i, stride in zip(index, self.strides))
            if inner is None:
                yield elements[begin : begin + length].tobytes()
            elif inner == 0:
                yield elements[begin : begin + 1].tobytes() * length
            else:
                yield elements[begin : begin + (length - 1) * inner + 1 : inner].tobytes()

    def dense_dimensions(self):
        """Returns the dimension from which on the elements are contiguous, and None; if none are, the
        last dimension and its stride."""
        step, outer = 1, len(self.shape)
        while outer > 0 and (self.strides[outer - 1] == step or self.shape[outer - 1] == 1):
            outer -= 1
            step *= self.shape[outer]
        if outer < len(self.shape) or not self.shape:
            return outer, None
        return outer - 1, self.strides[-1]


class Dictionary(dict):
    """A stand-in for an ordered dictionary that drops its attributes (versions of modules)."""

    __slots__ = ()

    def __setstate__(self, state):
        pass


def rebuilt_tensor(storage, offset, shape, strides, *_):
    tensor = Tensor(storage, offset, tuple(shape), tuple(strides))
    tensor.check()
    return tensor


def rebuilt_parameter(tensor, *_):
    return tensor


ALLOWED = {
    ("collections", "OrderedDict"): Dictionary,
    ("torch", "Size"): tuple,
    ("torch._utils", "_rebuild_tensor_v2"): rebuilt_tensor,
    ("torch._utils", "_rebuild_parameter"): rebuilt_parameter,
} | {("torch", name): StorageType(*what) for name, what in STORAGES.items()}


class Reader(pickle.Unpickler):
    """Every function that a pickle can call goes through find_class()."""

    def find_class(self, module, name):
        found = ALLOWED.get((module, name))
        if found is None:
            raise Refused(f"its pickle asks for {module}.{name}; only tensors and dictionaries are read")
        return found

    def persistent_load(self, what):
        if not isinstance(what, tuple) or len(what) != 5 or what[0] != "storage":
            raise Refused("its pickle refers to an external object that is no storage")
        _, kind, key, _, elements = what
        if not isinstance(kind, StorageType) or not isinstance(key, str) or type(elements) is not int:
            raise Refused("a storage is not described as PyTorch does")
        return Storage(kind, key, elements)


class Checkpoint:
    """An opened archive: <name>/data.pkl, and a file <name>/data/<key> per storage."""

    def __init__(self, path):
        with open(path, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                raise Refused(
                    "is no zip archive such as PyTorch writes since 1.6; load it with PyTorch in a sandbox, and save it again"
                )
        self.archive = zipfile.ZipFile(path)
        pickles = [n for n in self.archive.namelist() if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise Refused(f"is no checkpoint of PyTorch: it has {len(pickles)} files data.pkl")
        self.folder = pickles[0][: -len("data.pkl")]
        if self.folder + "byteorder" in self.archive.namelist():
            if self.read(self.folder + "byteorder") != b"little":
                raise Refused("its numbers are not little-endian")

    def content(self):
        file = io.BytesIO(self.read(self.folder + "data.pkl", PICKLE_LIMIT))
        try:
            return Reader(file).load()
        except (Refused, MemoryError):
            raise
        except Exception as error:  # a pickle is a program and may fail in any way
            raise Refused(f"its data.pkl cannot be read: {type(error).__name__}: {error}") from None

    def bytes_of(self, storage):
        name = f"{self.folder}data/{storage.key}"
        content = self.read(name, storage.elements * storage.type.bytes)
        if len(content) != storage.elements * storage.type.bytes:
            what = f"{storage.elements} elements of {storage.type.dtype}"
            raise Refused(f"{name} has {len(content)} bytes for {what}")
        return content

    def read(self, name, most=64):
        try:
            entry = self.archive.getinfo(name)
            if entry.compress_type != zipfile.ZIP_STORED:
                raise Refused(f"{name} is compressed, as PyTorch never does")
            if entry.file_size > most:
                raise Refused(f"{name} has {entry.file_size} bytes, not {most}")
            return self.archive.read(name)
        except KeyError:
            raise Refused(f"has no {name}") from None
        except (zipfile.BadZipFile, RuntimeError, EOFError) as error:
            raise Refused(f"{name} cannot be read: {error}") from None


def has_tensors(value):
    return isinstance(value, dict) and any(isinstance(v, Tensor) for v in value.values())


def state_dict(content, key):
    """Returns names and tensors: under `key`, in the content itself, or under its only key with some."""
    if key:
        for part in key.split("."):
            if not isinstance(content, dict) or part not in content:
                raise Refused(f"has no '{key}'")
            content = content[part]
    if not isinstance(content, dict):
        raise Refused(f"holds no dictionary of tensors, but: {type(content).__name__}")
    if not has_tensors(content):
        keys = [name for name, value in content.items() if has_tensors(value)]
        if len(keys) != 1:
            shown = ", ".join(map(str, keys or content))
            raise Refused(f"has tensors under {len(keys)} keys; choose with --key: {shown}")
        content = content[keys[0]]
    tensors = {}
    for name, value in content.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise Refused(f"a tensor is called {name!r}")
        if isinstance(value, Tensor):
            tensors[name] = value
        else:
            print(f"left out: {name}, which is no tensor but of type {type(value).__name__}", file=sys.stderr)
    return tensors


def stripped(tensors, prefix):
    names = [name[len(prefix) :] if name.startswith(prefix) else name for name in tensors]
    if len(set(names)) != len(names):
        raise Refused(f"without '{prefix}' two tensors have one name")
    return dict(zip(names, tensors.values()))


def header_of(tensors):
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.bytes
        dtype = tensor.storage.type.dtype
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-len(text) % 8)


def write(path, tensors, checkpoint):
    """Writes a temporary file and renames it. Holds one storage in memory at a time."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            header = header_of(tensors)
            file.write(struct.pack("<Q", len(header)) + header)
            storage, content = None, b""
            for tensor in tensors.values():
                if storage != tensor.storage:
                    storage, content = tensor.storage, checkpoint.bytes_of(tensor.storage)
                if tensor.bytes > 0:
                    file.writelines(tensor.runs(content))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def convert(source, target, key="", prefix=""):
    checkpoint = Checkpoint(source)
    tensors = stripped(state_dict(checkpoint.content(), key), prefix)
    write(target, tensors, checkpoint)
    return len(tensors)


def main():
    parser = argparse.ArgumentParser(
        description="Turns a PyTorch checkpoint into safetensors, running no code of it."
    )
    parser.add_argument("checkpoint", type=Path, help="the checkpoint, a .pt or .pth file of PyTorch")
    parser.add_argument("out", type=Path, nargs="?", help="the file to write; default: the checkpoint's name with .safetensors")
    parser.add_argument("--key", default="", help="where in the checkpoint the tensors are, such as state_dict or model.ema")
    parser.add_argument(
        "--strip", default="", metavar="PREFIX", help="what is taken off the beginning of names, such as module."
    )
    arguments = parser.parse_args()
    source = arguments.checkpoint
    target = arguments.out or source.with_suffix(".safetensors")
    try:
        count = convert(source, target, arguments.key, arguments.strip)
    except (Refused, OSError, zipfile.BadZipFile) as error:
        place = getattr(error, "filename", None) or source
        print(f"{place}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 3
    print(f"{target}: {count} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
