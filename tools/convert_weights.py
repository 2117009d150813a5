#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a PyTorch checkpoint (.pt, .pth) into safetensors, for `model.weights`.

    tools/convert_weights.py resnet18-f37072fd.pth [resnet18.safetensors] [--key state_dict] [--strip module.]

No code of the checkpoint runs, unlike with older versions of `torch.load`: its pickle may name tensors,
their storages, dictionaries and plain values such as argparse.Namespace, numpy's numbers and paths, for
which this file has stand-ins. Anything else is refused, or with --ignore-objects read as an object without content.
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

# PyTorch's name of a storage or element type: safetensors' name, bytes per element.
TYPES = {
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
    "uint16": ("U16", 2),
    "uint32": ("U32", 4),
    "uint64": ("U64", 8),
    "float8_e4m3fn": ("F8_E4M3", 1),
    "float8_e5m2": ("F8_E5M2", 1),
}
MOST_EXPANDED = 1 << 24  # elements of all tensors that repeat what their storages have
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
        if math.prod(self.shape) > max(self.storage.elements, MOST_EXPANDED):
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


class DefaultDictionary(Dictionary):
    """A stand-in that drops what makes missing values."""

    __slots__ = ()

    def __init__(self, *_):
        super().__init__()


class Empty:
    """A stand-in for an object that keeps nothing of what it is made of."""

    __slots__ = ()

    def __new__(cls, *_, **__):
        return super().__new__(cls)

    def __init__(self, *_, **__):
        pass

    def ignore(self, *_):
        pass

    __setstate__ = __setitem__ = append = extend = add = ignore

    def __call__(self, *_, **__):
        return self


def rebuilt_tensor(storage, offset, shape, strides, *_):
    tensor = Tensor(storage, offset, tuple(shape), tuple(strides))
    tensor.check()
    return tensor


def rebuilt_tensor_of_type(storage, offset, shape, strides, requires_grad, hooks, kind, *_):
    """A tensor over a storage of bytes."""
    if not isinstance(storage, Storage) or not isinstance(kind, StorageType):
        raise Refused("a tensor is not described as PyTorch does")
    typed = Storage(kind, storage.key, storage.elements * storage.type.bytes // kind.bytes)
    return rebuilt_tensor(typed, offset, shape, strides)


def rebuilt_parameter(tensor, *_):
    return tensor


PLAIN = """
    argparse.Namespace types.SimpleNamespace collections.deque _codecs.encode
    builtins.set builtins.frozenset builtins.bytearray builtins.complex builtins.slice builtins.range
    builtins.int builtins.float builtins.list builtins.dict builtins.bool builtins.str builtins.tuple builtins.object
    datetime.datetime datetime.date datetime.time datetime.timedelta datetime.timezone decimal.Decimal fractions.Fraction uuid.UUID
    pathlib.Path pathlib.PosixPath pathlib.WindowsPath pathlib.PurePath pathlib.PurePosixPath pathlib.PureWindowsPath
    pathlib._local.PosixPath pathlib._local.WindowsPath
    numpy.dtype numpy.ndarray numpy.core.multiarray.scalar numpy._core.multiarray.scalar
    numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct numpy._core.numeric._frombuffer numpy.core.numeric._frombuffer
    numpy.random._mt19937.MT19937 numpy.random._pcg64.PCG64 numpy.random.bit_generator.BitGenerator
    numpy.random._pickle.__randomstate_ctor numpy.random._pickle.__generator_ctor numpy.random._pickle.__bit_generator_ctor
    torch.device torch.memory_format torch.layout torch.Generator torch.serialization._get_layout
    torch.bool torch.uint8 torch.int8 torch.int16 torch.int32 torch.int64 torch.float16 torch.bfloat16 torch.float32 torch.float64
    torch.complex32 torch.complex64 torch.complex128
"""

ALLOWED = (
    {tuple(name.rsplit(".", 1)): Empty for name in PLAIN.split()}
    | {
        ("collections", "OrderedDict"): Dictionary,
        ("collections", "Counter"): Dictionary,
        ("collections", "defaultdict"): DefaultDictionary,
        ("torch", "Size"): tuple,
        ("torch.storage", "UntypedStorage"): StorageType("U8", 1),
        ("torch._utils", "_rebuild_tensor_v2"): rebuilt_tensor,
        ("torch._utils", "_rebuild_tensor_v3"): rebuilt_tensor_of_type,
        ("torch._utils", "_rebuild_parameter"): rebuilt_parameter,
    }
    | {("torch", name): StorageType(*what) for name, what in TYPES.items()}
)


class Reader(pickle.Unpickler):
    """Every function that a pickle can call goes through find_class()."""

    def __init__(self, file, ignore_objects):
        super().__init__(file)
        self.ignore_objects = ignore_objects

    def find_class(self, module, name):
        module = "builtins" if module == "__builtin__" else module  # as Python 2 called it
        found = Empty if self.ignore_objects else None
        found = ALLOWED.get((module, name), found)
        if found is None:
            raise Refused(
                f"its pickle asks for {module}.{name}; tensors, dictionaries and plain values are read "
                "(--ignore-objects leaves out other objects, and runs none of their code)"
            )
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
        if path.exists() and not path.is_file():
            raise Refused("is no regular file, such as PyTorch writes")  # reading a FIFO would never end
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

    def content(self, ignore_objects=False):
        file = io.BytesIO(self.read(self.folder + "data.pkl", PICKLE_LIMIT))
        try:
            return Reader(file, ignore_objects).load()
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


def in_a_line(name):
    """A name of a checkpoint, with no letter that moves the terminal's cursor."""
    text = str(name)
    return text if text.isprintable() else ascii(text)


def is_weight(value):
    """Whether it is a tensor that a model may have learned: a best accuracy and the state of a generator are none."""
    return isinstance(value, Tensor) and len(value.shape) > 0 and value.storage.type.dtype[:1] in "FB" and value.storage.type.dtype != "BOOL"


def has_weights(value):
    return isinstance(value, dict) and any(is_weight(each) for each in value.values())


def dictionaries_in(content):
    """By their paths, the dictionaries of weights that lie nearest below the content."""
    level = {str(key): value for key, value in content.items() if not str(key).endswith("_extra_state")}
    seen = {id(content)}  # a pickle may hold a dictionary in several places, and in itself
    while level:
        found = {path: value for path, value in level.items() if has_weights(value)}
        if found:
            return found
        inner = []
        for path, value in level.items():
            if isinstance(value, dict) and id(value) not in seen:
                seen.add(id(value))
                inner.append((path, value))
        level = {f"{path}.{key}": each for path, value in inner for key, each in value.items() if isinstance(key, str)}
    return {}


def under(content, key):
    for part in key.split(".") if key != "." else ():
        if not isinstance(content, dict) or part not in content:
            raise Refused(f"has no '{key}'")
        content = content[part]
    return content


def only_dictionary(content):
    """The one dictionary of weights: the content itself, or one in it. Where there are several, nobody guesses."""
    if not isinstance(content, dict):
        raise Refused(f"holds no dictionary of tensors, but: {type(content).__name__}")
    found = dictionaries_in(content)
    if has_weights(content):
        found = {".": content} | found
    if not found:
        others = any(isinstance(each, Tensor) for each in content.values())
        raise Refused(
            f"holds no weights: no tensor of floating-point numbers with a size{'; --key . takes its other tensors' if others else ''}"
        )
    if len(found) != 1:
        shown = ", ".join(map(in_a_line, found))
        raise Refused(f"has weights under {len(found)} keys; choose with --key: {shown}")
    ((path, chosen),) = found.items()
    for name, value in content.items():
        if chosen is not content and isinstance(value, Tensor):
            print(f"left out: {in_a_line(name)}, which is a tensor beside '{in_a_line(path)}'", file=sys.stderr)
    return chosen


def state_dict(content, key):
    """Names and tensors: under `key`, or in the only dictionary of weights."""
    content = under(content, key) if key else only_dictionary(content)
    if not isinstance(content, dict):
        raise Refused(f"holds no dictionary of tensors, but: {type(content).__name__}")
    tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        raise Refused(f"has no tensors under '{key}'")
    for name, value in content.items():
        if not isinstance(name, str) or name == "__metadata__" or not name.isprintable():
            raise Refused(f"a tensor is called {name!a}")
        if not isinstance(value, Tensor):
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
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb") as file:
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


def convert(source, target, key="", prefix="", ignore_objects=False):
    checkpoint = Checkpoint(source)
    tensors = stripped(state_dict(checkpoint.content(ignore_objects), key), prefix)
    sizes = [(math.prod(tensor.shape), tensor.storage.elements) for tensor in tensors.values()]
    if sum(size for size, elements in sizes if size > elements) > MOST_EXPANDED:
        raise Refused(f"its tensors repeat what their storages have in more than {MOST_EXPANDED} elements")
    write(target, tensors, checkpoint)
    return len(tensors)


def main():
    parser = argparse.ArgumentParser(
        description="Turns a PyTorch checkpoint into safetensors, running no code of it."
    )
    parser.add_argument("checkpoint", type=Path, help="the checkpoint, a .pt or .pth file of PyTorch")
    parser.add_argument("out", type=Path, nargs="?", help="the file to write; default: the checkpoint's name with .safetensors")
    parser.add_argument("--key", default="", help="where in the checkpoint the tensors are, such as state_dict or model.ema; . is its top")
    parser.add_argument(
        "--strip", default="", metavar="PREFIX", help="what is taken off the beginning of names, such as module."
    )
    parser.add_argument(
        "--ignore-objects", action="store_true", help="read objects of unknown classes as objects without content; none of their code runs"
    )
    arguments = parser.parse_args()
    source = arguments.checkpoint
    target = arguments.out or source.with_suffix(".safetensors")
    try:
        count = convert(source, target, arguments.key, arguments.strip, arguments.ignore_objects)
    except (Refused, OSError, zipfile.BadZipFile) as error:
        place = getattr(error, "filename", None) or source
        print(f"{place}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 3
    print(f"{target}: {count} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
