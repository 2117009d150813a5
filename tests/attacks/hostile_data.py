# SPDX-License-Identifier: Apache-2.0
"""Data, weights, archives, images, texts, profiles and run folders made to hurt: each is refused with exit
code 3 (2 where another file is to blame and it says so), one line naming the file, and no more memory
than a healthy run of the program plus twice the file's size, or the limit stated beside the case.
"""

import gzip
import io
import itertools
import json
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

import attack
from attack import BINARY, DATA, EXPERIMENT, FINE, MIB, Case, fifo, folder, hole, link, listening

CASES = []
HEALTHY = 220 * MIB  # of a `check` or a small `run`: 125 to 200 MiB are LibTorch's


def add(name, files, experiment, *says, command=("check", "x.yaml"), code=DATA, size=0, limit=0, seconds=2, **more):
    """`size`: of the hostile file; `limit`: memory that a limit of the format allows beyond a healthy run."""
    CASES.append(Case(
        name, {"x.yaml": experiment} | files, command, code, says=says, seconds=seconds,
        memory=HEALTHY + max(2 * size, limit), **more,
    ))


SPECIAL = (
    ("a FIFO", fifo), ("a socket", listening), ("/dev/zero", link("/dev/zero")), ("/dev/urandom", link("/dev/urandom")),
    ("a terminal", link("/dev/ptmx")), ("a folder", folder), ("a link to itself", link("loop")), ("a link to nothing", link("nowhere")),
)
RUN = ("run", "x.yaml", "--out", "out", "--quiet")

# --- safetensors ------------------------------------------------------------------------------------------

SIZES = {"F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def packed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors(*named):
    """(name, dtype, shape) one after another, zeros."""
    header, end = {}, 0
    for name, dtype, shape in named:
        size = SIZES[dtype]
        for extent in shape:
            size *= extent
        header[name] = entry(dtype, shape, end, end + size)
        end += size
    return header, bytes(end)


WEIGHTS = (("0.weight", "F32", [3, 64]), ("0.bias", "F32", [3]), ("1.weight", "F32", [10, 3]), ("1.bias", "F32", [10]))
SAMPLES = (("train.x", "F32", [40, 64]), ("train.y", "I64", [40]), ("test.x", "F32", [8, 64]), ("test.y", "I64", [8]))
OF_WEIGHTS = "model: {name: mlp, widths: [64, 3, 10], weights: f.safetensors}\n"
OF_SAMPLES = "dataset: {name: tensors, file: f.safetensors}\nmodel: {name: mlp, widths: [64, 3, 10]}\nloader: {batch_size: 4}\n"


def of_both(name, make, *says, **more):
    """The same damage to a weights file and to samples."""
    for kind, named, experiment in (("weights", WEIGHTS, OF_WEIGHTS), ("samples", SAMPLES, OF_SAMPLES)):
        add(f"{kind}: {name}", {"f.safetensors": make(*tensors(*named))}, experiment, "f.safetensors", *says, **more)


def changed(change):
    """A header with the first tensor's entry changed."""

    def make(header, data):
        first = next(iter(header))
        change(header[first])
        return packed(header, data)

    return make


def text_changed(change):
    return lambda header, data: packed(change(json.dumps(header)).encode(), data)


for length in (0, 1, 7, 8, 9, 40):
    of_both(f"cut after {length} bytes", lambda header, data, length=length: packed(header, data)[:length])
for name, cut in (("within the header", lambda whole, data: len(whole) - len(data) - 3), ("before the data", lambda whole, data: len(whole) - len(data)),
                  ("one byte short", lambda whole, data: len(whole) - 1), ("half", lambda whole, data: len(whole) // 2)):
    of_both(f"cut {name}", lambda header, data, cut=cut: packed(header, data)[: cut(packed(header, data), data)])
for length in (1 << 63, (1 << 64) - 1, 100_000_001, 1 << 32, (1 << 63) + 7):
    of_both(f"header of {length} bytes", lambda header, data, length=length: struct.pack("<Q", length) + packed(header, data)[8:])
of_both("a byte too many", lambda header, data: packed(header, data + b"\0"), "bytes of data")
for name, text in (("a list", b"[]"), ("null", b"null"), ("a text", b'"x"'), ("empty", b""), ("spaces", b"   "), ("cut JSON", b'{"0.weight": {"dtype"'),
                   ("trailing text", b"{} x"), ("two values", b"{}{}"), ("NUL", b'{"a\0": {}}'), ("BOM", b"\xef\xbb\xbf{}"), ("not UTF-8", b'{"\xff": {}}'),
                   ("comment", b"{/* */}"), ("NaN", b'{"a": NaN}'), ("deep", b'{"a":' * 100_000), ("brackets", b"[" * 1_000_000), ("quotes", b'"' * 100_000)):
    add(f"weights: header is {name}", {"f.safetensors": packed(text)}, OF_WEIGHTS, "f.safetensors")
for name, change, says in (
    ("type unknown", lambda e: e.update(dtype="F8"), "F8"), ("type a number", lambda e: e.update(dtype=32), ""), ("no type", lambda e: e.pop("dtype"), "dtype"),
    ("no shape", lambda e: e.pop("shape"), "shape"), ("no offsets", lambda e: e.pop("data_offsets"), "data_offsets"), ("negative shape", lambda e: e.update(shape=[-1]), "negative"),
    ("broken shape", lambda e: e.update(shape=[1.5]), ""), ("huge shape", lambda e: e.update(shape=[1 << 63]), "more elements"), ("shape that overflows", lambda e: e.update(shape=[1 << 32, 1 << 32]), "more elements"),
    ("shape of texts", lambda e: e.update(shape=["3"]), ""), ("nested shape", lambda e: e.update(shape=[[3]]), ""), ("65 dimensions", lambda e: e.update(shape=[1] * 65), "more than 64"),
    ("offsets reversed", lambda e: e.update(data_offsets=e["data_offsets"][::-1]), "begin"), ("offsets beyond", lambda e: e.update(data_offsets=[0, 1 << 40]), ""),
    ("offsets of 2^64", lambda e: e.update(data_offsets=[0, (1 << 64) - 1]), ""), ("three offsets", lambda e: e.update(data_offsets=[0, 1, 2]), "begin"), ("one offset", lambda e: e.update(data_offsets=[0]), "begin"),
    ("an overlap", lambda e: e.update(data_offsets=[4, e["data_offsets"][1] + 4]), ""), ("another key", lambda e: e.update(extra=1), ""), ("a mapping within", lambda e: e.update(extra={}), ""),
    ("a null", lambda e: e.update(shape=None), ""), ("a flag", lambda e: e.update(shape=True), ""),
):
    of_both(name, changed(change), *([says] if says else []))
of_both("metadata is a list", text_changed(lambda t: t[:-1] + ', "__metadata__": []}'))
of_both("metadata of numbers", text_changed(lambda t: t[:-1] + ', "__metadata__": {"a": 1}}'))
of_both("metadata twice", text_changed(lambda t: t[:-1] + ', "__metadata__": {}, "__metadata__": {}}'), "twice")
add("weights: a name twice", {"f.safetensors": packed(b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}')}, OF_WEIGHTS, "twice")
add("weights: names lead out", {"f.safetensors": packed(*tensors(("../../etc/passwd", "F32", [1])))}, OF_WEIGHTS, "does not fit")
add("weights: a name that acts", {"f.safetensors": packed(*tensors(("\x1b[31mred\x07", "F32", [1])))}, OF_WEIGHTS, "does not fit")
add("weights: a name of 1 MB", {"f.safetensors": packed(*tensors(("x" * 1_000_000, "F32", [1])))}, OF_WEIGHTS, "f.safetensors", size=MIB, limit=8 * MIB)
add("weights: one missing", {"f.safetensors": packed(*tensors(*WEIGHTS[1:]))}, OF_WEIGHTS, "'0.weight' is not in the file")
add("weights: one too many", {"f.safetensors": packed(*tensors(*WEIGHTS, ("x", "F32", [1])))}, OF_WEIGHTS, "'x' is in the file, but not in the model")
add("weights: of another shape", {"f.safetensors": packed(*tensors(("0.weight", "F32", [64, 3]), *WEIGHTS[1:]))}, OF_WEIGHTS, "64×3")
for dtype in ("I32", "I64", "U8", "BOOL"):
    add(f"weights: whole numbers {dtype}", {"f.safetensors": packed(*tensors(("0.weight", dtype, [3, 64]), *WEIGHTS[1:]))}, OF_WEIGHTS, "0.weight", "whole numbers")
    add(f"weights: whole numbers {dtype} of run", {"f.safetensors": packed(*tensors(("0.weight", dtype, [3, 64]), *WEIGHTS[1:]))}, OF_WEIGHTS, "whole numbers", command=RUN)
add("samples: labels of BOOL that are 2", {"f.safetensors": packed(tensors(*SAMPLES[:1], ("train.y", "BOOL", [40]), *SAMPLES[2:])[0], b"\2" * len(tensors(*SAMPLES[:1], ("train.y", "BOOL", [40]), *SAMPLES[2:])[1]))}, OF_SAMPLES, "BOOL")
for name, named, says in (
    ("no train.x", SAMPLES[1:], "train.x"), ("x of whole numbers", (("train.x", "I32", [40, 64]), *SAMPLES[1:]), "floating"), ("y floating", (SAMPLES[0], ("train.y", "F32", [40]), *SAMPLES[2:]), "integers"),
    ("counts differ", (SAMPLES[0], ("train.y", "I64", [41]), *SAMPLES[2:]), "must be [40]"), ("no samples", (("train.x", "F32", [0, 64]), ("train.y", "I64", [0]), *SAMPLES[2:]), "samples"),
    ("nothing in a sample", (("train.x", "F32", [40, 0]), *SAMPLES[1:]), "train.x"), ("a scalar", (("train.x", "F32", []), *SAMPLES[1:]), "train.x"), ("test of another shape", (*SAMPLES[:2], ("test.x", "F32", [8, 63]), SAMPLES[3]), "test.x"),
    ("a million names", tuple((f"t{i}", "F32", [0]) for i in range(3000)), "train.x"),
):
    add(f"samples: {name}", {"f.safetensors": packed(*tensors(*named))}, OF_SAMPLES, says)
for name, label in (("negative", -1), ("least", -(1 << 63)), ("most", (1 << 63) - 1)):
    header, data = tensors(*SAMPLES)
    at = header["train.y"]["data_offsets"][0]
    add(f"samples: label {name}", {"f.safetensors": packed(header, data[:at] + struct.pack("<q", label) + data[at + 8 :])}, OF_SAMPLES, "train.y", str(label))

MANY = 90_000_000


def many_tensors(path):
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", MANY) + b"{")
        piece = b"".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},' % i for i in range(1000))
        for _ in range((MANY - 2) // len(piece)):
            file.write(piece)
        file.write(b" " * (8 + MANY - 1 - file.tell()) + b"}")


def long_text(before, after):
    def make(path):
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", MANY) + before)
            for _ in range(MANY // 1_000_000 - 1):
                file.write(b"x" * 1_000_000)
            file.write(after + b" " * (8 + MANY - file.tell() - len(after)))

    return make


def much_metadata(path):
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", MANY) + b'{"__metadata__":{')
        piece = b"".join(b'"%07d":"",' % i for i in range(1000))
        for _ in range((MANY - 100) // len(piece)):
            file.write(piece)
        file.write(b'"a":""}}' + b" " * (8 + MANY - file.tell() - 8))


for name, make, says in (
    ("tensors", many_tensors, "tensors; at most"), ("one name", long_text(b'{"', b'":{}}'), "at most 1,048,576"), ("metadata", much_metadata, "metadata"),
    ("one text of metadata", long_text(b'{"__metadata__":{"a":"', b'"}}'), "at most 1,048,576"), ("open quote", long_text(b'{"', b""), "at most"),
    ("brackets", lambda path: path.write_bytes(struct.pack("<Q", MANY) + b"{" * MANY), "at most"), ("nothing", hole(8 + MANY, struct.pack("<Q", MANY)), "not JSON"),
):
    for kind, experiment in (("weights", OF_WEIGHTS), ("samples", OF_SAMPLES)):
        add(f"{kind}: 90 MB header of {name}", {"f.safetensors": make}, experiment, "f.safetensors", says, size=MANY, limit=64 * MIB)
BIG = json.dumps({"train.x": entry("F32", [1 << 36, 4], 0, 1 << 40)}).encode()
add("samples: a sparse TB", {"f.safetensors": hole(8 + len(BIG) + (1 << 40), packed(BIG))}, OF_SAMPLES, "f.safetensors")
add("weights: a sparse TB", {"f.safetensors": hole(8 + len(BIG) + (1 << 40), packed(BIG))}, OF_WEIGHTS, "does not fit")
for name, make in SPECIAL:
    add(f"weights: {name}", {"f.safetensors": make}, OF_WEIGHTS, "f.safetensors")
    add(f"samples: {name}", {"f.safetensors": make}, OF_SAMPLES, "f.safetensors")

# --- NumPy's arrays, tables of numbers -----------------------------------------------------------------------------

def npy(descr, shape, data=b"", version=1):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(members, kind=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are there twice are meant
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def arrays(name, file, content, *says, **more):
    targets = ", target_file: y.npy" if file == "x.npy" else ""
    experiment = f"dataset: {{name: tensors, file: {file}, split: 4{targets}}}\nmodel: {{name: mlp, widths: [64, 3, 10]}}\n"
    add(f"{file}: {name}", {file: content, "y.npy": npy("'<i8'", "(40,)", bytes(320))}, experiment, file, *says, **more)


X = npy("'<f4'", "(40, 64)", bytes(40 * 64 * 4))
for name, make in SPECIAL:
    for file in ("x.npy", "x.npz", "x.csv"):
        arrays(name, file, make)
for name, content, says in (
    ("pickled objects", npy("'|O'", "(1,)", b"\x80\x04cos\nabort\n)R."), "Python objects"),
    ("code for a header", b"\x93NUMPY\x01\x00\x1a\x00__import__('os').abort()  \n", "expected"),
    ("exabytes", npy("'<f8'", "(1152921504606846976, 64)"), "expected more"),
    ("a product of 0 in 64 bits", npy("'<f8'", "(4294967296, 4294967296)"), "expected more"),
    ("a header of 4 GB", b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100), "expected at most"),
    ("65,000 brackets", npy("'<f8'", "(" * 65_000, version=1), "a size is expected"),
    ("a sparse TB", hole(1 << 40, npy("'<f4'", "(40, 64)")), "bytes of data; expected"),
    ("cut", X[:-1], "bytes of data; expected"),
):
    arrays(name, "x.npy", content, says)
Y = ("y.npy", npy("'<i8'", "(40,)", bytes(320)))
for name, content, says in (
    ("pickled objects", npz([("x.npy", npy("'|O'", "(1,)", b"\x80\x04N.")), Y]), "Python objects"),
    ("a size that lies", npz([("x.npy", X), Y]).replace(struct.pack("<I", len(X)), b"\xfe\xff\xff\xff"), "can hold"),
    ("another archive in it", npz([("x.npy", X), ("more.npz", npz([Y]))]), "is no array"),
    ("out of the folder", npz([("../x.npy", X), Y]), "leads out"),
    ("twice the same", npz([("x.npy", X), ("x.npy", X), Y]), "twice"),
    ("packed otherwise", npz([("x.npy", X), Y], zipfile.ZIP_BZIP2), "packed otherwise"),
):
    arrays(name, "x.npz", content, says)
BOMB = npz([("x.npy", bytes(100 * MIB))])
arrays("a bomb", "x.npz", BOMB, "does not begin with", limit=100 * MIB)
for name, content, says in (
    ("a sparse TB", hole(1 << 40), "at most"),
    ("no text", bytes(range(256)) * 16, "expected"),
    ("a million fields", b"," * 2_000_000, "fields"),
    ("a number of a million digits", b"1,2\n" + b"9" * 1_000_000 + b",1\n", "finite"),
    ("terminal codes", b"a,b\n\x1b]0;pwned\x07,1\n", r"\x1b"),
):
    arrays(name, "x.csv", content, says, size=len(content) if isinstance(content, bytes) else 0)

# --- cifar10: records, plain, gzipped and in an archive -------------------------------------------------------

CIFAR = "dataset: {name: cifar10, root: d}\nmodel: {name: cnn, width: 0.1}\nloader: {batch_size: 2}\n"
RECORD, LENGTH = 3073, 30_730_000  # of a record, of each official file


def cifar(name, files, *says, **more):
    more = {"size": LENGTH} | more
    add(f"cifar10: {name}", {f"d/{file}": content for file, content in files.items()}, CIFAR, *says, **more)


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def tar(*members, mode="w:gz", format=tarfile.GNU_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=format) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


RECORDS = hole(LENGTH)
WHOLE = {"data_batch_1.bin": RECORDS, "test_batch.bin": RECORDS}
cifar("whole", WHOLE, code=FINE, size=2 * LENGTH)
cifar("half a record", WHOLE | {"data_batch_1.bin": hole(LENGTH - 1)}, "data_batch_1.bin", "truncated")
cifar("empty", WHOLE | {"data_batch_1.bin": b""}, "data_batch_1.bin", "truncated")
cifar("empty test", WHOLE | {"test_batch.bin": b""}, "test_batch.bin", size=2 * LENGTH)
cifar("label 10", WHOLE | {"data_batch_1.bin": hole(LENGTH, bytes(3 * RECORD) + b"\x0a")}, "data_batch_1.bin", "record 3", "label 10", size=2 * LENGTH)
cifar("label 255", WHOLE | {"test_batch.bin": hole(LENGTH, b"\xff")}, "test_batch.bin", "record 0", "label 255", size=2 * LENGTH)
cifar("a hole among the files", WHOLE | {"data_batch_3.bin": RECORDS}, "data_batch_2.bin", size=2 * LENGTH)
cifar("too large", WHOLE | {"data_batch_1.bin": hole(LENGTH + 1)}, "data_batch_1.bin", "at most")
cifar("a sparse TB", WHOLE | {"data_batch_1.bin": hole(1 << 40)}, "data_batch_1.bin", "at most")
for name, make in SPECIAL:
    cifar(name, WHOLE | {"data_batch_1.bin": make}, "data_batch_1.bin")
ZERO = bytes(LENGTH)
GZ = gzip.compress(ZERO)
for name, content, says in (
    ("empty", b"", "gzip"), ("no gzip", bytes(3000), "gzip"), ("cut in its header", GZ[:5], ""), ("cut in its data", GZ[: len(GZ) // 2], "truncated"), ("cut before its checksum", GZ[:-8], "truncated"),
    ("cut in its checksum", GZ[:-3], "truncated"), ("wrong checksum", GZ[:-8] + b"\0\0\0\0" + GZ[-4:], "damaged"), ("wrong length", GZ[:-4] + b"\0\0\0\0", "damaged"), ("damaged", GZ[:12] + b"\xff\xff\xff" + GZ[15:], ""),
    ("other bytes behind", GZ + b"xyz", "follow"), ("half a member behind", GZ + GZ[:6], ""), ("method 9", GZ[:2] + b"\x09" + GZ[3:], "damaged"), ("a bomb", gzip.compress(bytes(200 * MIB), 9), "more than"),
    ("of another size", gzip.compress(ZERO[:-7]), "truncated"),
):
    cifar(f"gzipped, {name}", {"data_batch_1.bin.gz": content, "test_batch.bin": RECORDS}, "data_batch_1.bin.gz", *([says] if says else []), limit=100 * MIB)
INSIDE = tuple(member(f"c/{name}", ZERO) for name in WHOLE)
TAR = tar(*INSIDE)
PLAIN = tar(*INSIDE, mode="w:")


def raw(name, size_field, kind=b"0"):
    """One header block with that size field."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT)[:512])
    block[124:136] = size_field.ljust(12, b"\0")
    block[156:157] = kind
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax(records):
    """An extended header with these records, the file that it belongs to, and the archive's end."""
    return raw("x", b"%o" % len(records), b"x") + records.ljust(512, b"\0") + raw("f", b"0") + bytes(1024)


for name, content, says in (
    ("whole", TAR, None), ("empty", b"", ""), ("no archive", bytes(3000) + b"x" * 3000, ""), ("random", random.Random(1).randbytes(5000), ""), ("cut", TAR[: len(TAR) // 2], "truncated"), ("cut at the end", TAR[:-5], "truncated"),
    ("wrong checksum of gzip", TAR[:-8] + b"\0\0\0\0" + TAR[-4:], "damaged"), ("cut, not packed", PLAIN[:700], "truncated"), ("cut in a header", PLAIN[:300], "truncated"),
    ("wrong checksum of a header", PLAIN[:10] + b"x" + PLAIN[11:], "checksum"), ("leads out", tar(member("../../etc/x", b"a"), *INSIDE), "leads out"), ("absolute", tar(member("/etc/x", b"a"), *INSIDE), "leads out"),
    ("leads out from within", tar(member("c/../../x", b"a"), *INSIDE), "leads out"), ("a symbolic link", tar(member("c/data_batch_1.bin", type=tarfile.SYMTYPE, linkname="/etc/passwd")), "link"),
    ("a hard link", tar(member("c/data_batch_1.bin", type=tarfile.LNKTYPE, linkname="/etc/passwd")), "link"), ("a device", tar(member("c/data_batch_1.bin", type=tarfile.CHRTYPE)), "special"),
    ("a FIFO", tar(member("c/data_batch_1.bin", type=tarfile.FIFOTYPE)), "special"), ("too large a member", tar(member("c/data_batch_1.bin", bytes(LENGTH + 1)), *INSIDE[1:]), "at most"), ("a file missing", tar(INSIDE[0]), "test_batch.bin"),
    ("half a record", tar(member("c/data_batch_1.bin", ZERO[:-1]), INSIDE[1]), "truncated"), ("a size of 2^63", gzip.compress(raw("c/data_batch_1.bin", b"\x80" + bytes(3) + b"\x80" + bytes(7)) + bytes(1024)), ""),
    ("a negative size", gzip.compress(raw("c/data_batch_1.bin", b"\xff" * 12) + bytes(1024)), "size"), ("a size of letters", gzip.compress(raw("c/data_batch_1.bin", b"abc") + bytes(1024)), "size"),
    ("a size of a TB", gzip.compress(raw("c/data_batch_1.bin", b"\x80" + bytes(5) + struct.pack(">q", 1 << 39)[2:]) + bytes(1024)), ""), ("a long name of 1 GB", gzip.compress(raw("././@LongLink", b"7777777777", b"L") + bytes(1024)), "too large"),
    ("pax without a length", gzip.compress(pax(b"abc")), "pax"), ("pax with too long a record", gzip.compress(pax(b"99 path=a\n")), "pax"),
    ("pax with a negative size", gzip.compress(pax(b"11 size=-5\n")), "negative"), ("pax of 2^63 length", gzip.compress(pax(b"9223372036854775808 path=a\n")), "pax"),
    ("other data behind", gzip.compress(PLAIN + b"x" * (20 * MIB), 1), "follow"), ("a zip of this name", b"PK\x03\x04" + bytes(100), "zip"),
):
    fine = {"code": FINE} if says is None else {}
    cifar(f"archive, {name}", {"cifar-10-binary.tar.gz": content}, *(["cifar-10-binary.tar.gz"] if not fine else []), *([says] if says else []), limit=160 * MIB, **({"seconds": 4} | fine))
cifar("archive, a FIFO itself", {"cifar-10-binary.tar.gz": fifo}, "data_batch_1.bin")
for name, make in SPECIAL[:5]:
    add(f"cifar10: root is {name}", {"d": make}, CIFAR, "d")

# --- idx ---------------------------------------------------------------------------------------------------------

IDX = "dataset: {name: fashion_mnist, root: d}\nmodel: {name: cnn, channels: 1, size: 28, width: 0.1}\n"
IMAGES, LABELS = struct.pack(">IIII", 0x803, 60_000, 28, 28), struct.pack(">II", 0x801, 60_000)
OFFICIAL, LABEL_FILE = 47_040_016, 60_008


def idx(name, images, *says, labels=None, size=OFFICIAL, **more):
    files = {"d/train-images-idx3-ubyte": images, "d/train-labels-idx1-ubyte": labels or LABELS + bytes(60_000)}
    add(f"idx: {name}", files, IDX, *says, size=size, **more)


for name, begin, says in (
    ("zeros", b"", "magic number 0"), ("little-endian magic", struct.pack("<IIII", 0x803, 60_000, 28, 28), "magic"), ("magic of floats", struct.pack(">IIII", 0xD03, 60_000, 28, 28), "magic"),
    ("magic of labels", struct.pack(">IIII", 0x801, 60_000, 28, 28), "magic"), ("2^32 - 1 records", struct.pack(">IIII", 0x803, 0xFFFFFFFF, 28, 28), "4294967295"), ("no records", struct.pack(">IIII", 0x803, 0, 28, 28), "0 records"),
    ("rows of 2^31", struct.pack(">IIII", 0x803, 60_000, 1 << 31, 28), "dimension 1"), ("columns of 0", struct.pack(">IIII", 0x803, 60_000, 28, 0), "dimension 2"),
):
    idx(name, hole(OFFICIAL, begin), "train-images-idx3-ubyte", says)
for name, length in (("empty", 0), ("3 bytes", 3), ("its header", 16), ("one short", OFFICIAL - 1), ("one too many", OFFICIAL + 1), ("a sparse TB", 1 << 40)):
    idx(name, hole(length, IMAGES[:length]), "train-images-idx3-ubyte")
idx("a label of 10", hole(OFFICIAL, IMAGES), "label 10", labels=LABELS + bytes(100) + b"\x0a" + bytes(59_899))
idx("labels cut", hole(OFFICIAL, IMAGES), "train-labels-idx1-ubyte", labels=LABELS + bytes(10))
for name, make in SPECIAL:
    idx(name, make, "train-images-idx3-ubyte")

# --- what says how much there is ------------------------------------------------------------------------------------------

for label in (1 << 63) - 1, (1 << 63) - 2, 256:
    add(
        f"JSON lines: the class {label}", {"f.jsonl": "".join(json.dumps({"text": "a", "label": label}) + "\n" for _ in range(8))},
        "dataset: {name: json_lines, file: f.jsonl, split: 0.25, words: 50, tokens: 8}\nmodel: {name: residual_lstm, width: 16}\n",
        "at most 256 classes",
    )
for name, inner in (("layers in layers", "{residual: [{repeat: {times: 9000, layers: [relu]}}]}"), ("repeats of nothing", "{repeat: {times: 9000, layers: []}}")):
    add(
        f"layers: {name}", {}, f"model: {{name: sequential, layers: [flatten, {{repeat: {{times: 9000, layers: [{inner}]}}}}, {{linear: 10}}]}}\n",
        "has more than 10000 layers" if "in" in name.split() else "has a repeat", code=EXPERIMENT,
    )
add(
    "simulate: hardware that is too small for a large pipeline", {},
    f"model: {{name: mlp, widths: [64{', 8' * 210}, 10]}}\npipeline: {{stages: 200, microbatches: 512}}\nloader: {{batch_size: 512}}\n",
    "needs one for each of 200 workers", command=("simulate", "x.yaml", "--hardware", "dgx1-v100"), code=EXPERIMENT,
)

# --- graphs of imported modules -------------------------------------------------------------------------------------------


def graph_node(operator, arguments, *outputs, overload=""):
    return {
        "operator": f"aten::{operator}", "overload": overload, "schema": "", "module": "m", "arguments": arguments,
        "outputs": [{"name": name, "shape": shape, "type": "float32"} for name, shape in outputs],
    }


def value(name):
    return {"value": name}


IMAGE = graph_node("view", {"self": value("x"), "size": [{"size": [1, 0]}, 1, 8, 8]}, ("i", [[1, 0], [0, 1], [0, 8], [0, 8]]))
STEPS = graph_node("view", {"self": value("x"), "size": [{"size": [1, 0]}, 8, 8]}, ("s", [[1, 0], [0, 8], [0, 8]]))
STATE = graph_node("zeros", {"size": [1, {"size": [1, 0]}, 2]}, ("h", [[0, 1], [1, 0], [0, 2]]))
COLUMN, ROW = (graph_node("zeros", {"size": size}, (name, [[0, each] for each in size])) for name, size in (("c", [15000, 1]), ("r", [1, 15000])))
ENDLESS = graph_node("expand", {"self": {"parameter": "one"}, "size": [1 << 31]}, ("e", [[0, 1 << 31]]))
SMALL = ("o", [[1, 0], [0, 1], [0, 2], [0, 2]])


def graph_lstm(*shapes, hidden=2):
    params = [{"parameter": f"p{i}"} for i in range(len(shapes))]
    return graph_node(
        "lstm", {"input": value("s"), "hx": [value("h"), value("h")], "params": params, "has_biases": len(shapes) > 2, "num_layers": 1,
                 "dropout": 0.0, "train": True, "bidirectional": False, "batch_first": True},
        ("o", [[1, 0], [0, 8], [0, hidden]]), ("h1", [[0, 1], [1, 0], [0, hidden]]), ("c1", [[0, 1], [1, 0], [0, hidden]]), overload="input",
    ), {f"p{i}": list(shape) for i, shape in enumerate(shapes)}


def graph(name, nodes, *says, parameters=(), code=DATA):
    """A graph that computes `nodes` beside a linear layer, whose results nobody reads."""
    shapes = {"w": [10, 64], "one": [1], "k": [1, 1, 2, 2]} | dict(parameters)
    shapes = {name: shape for name, shape in shapes.items() if name == "w" or json.dumps({"parameter": name}) in json.dumps(nodes)}
    last = graph_node("linear", {"input": value("x"), "weight": {"parameter": "w"}}, ("z", [[1, 0], [0, 10]]))
    document = {
        "format": 1, "torch": "2.11.0", "input": {"name": "x", "shape": [64], "type": "float32", "vocabulary": 0}, "output": "z",
        "output_shape": [10], "parameters": shapes, "buffers": {}, "constants": [], "nodes": [*nodes, last],
    }
    experiment = (
        "dataset: {name: tensors, file: f.safetensors}\nloader: {batch_size: 4}\ntrain: {epochs: 1}\npipeline: {stages: 1}\n"
        "model: {name: graph, file: net, weights: net/weights.safetensors}\n"
    )
    files = {
        "f.safetensors": packed(*tensors(*SAMPLES)), "net/graph.json": json.dumps(document),
        "net/weights.safetensors": packed(*tensors(*((name, "F32", shape) for name, shape in shapes.items()))),
    }
    add(f"a graph: {name}", files, experiment, *says, command=RUN, code=code, seconds=4)


for name, shapes, code, *says in (
    ("an LSTM", ([8, 8], [8, 2], [8], [8]), FINE),
    ("an LSTM's small weights", ([4, 4], [4, 4], [4], [4]), DATA, "parameter 0 has the shape 4×4; expected 8×8"),
    ("an LSTM's small bias", ([8, 8], [8, 2], [1], [8]), DATA, "parameter 2 has the shape 1; expected 8"),
    ("an LSTM without biases and with small weights", ([8, 8], [4, 2]), DATA, "parameter 1 has the shape 4×2; expected 8×2"),
    ("an LSTM with a parameter too few", ([8, 8], [8, 2], [8]), DATA, "3 parameters; expected 4"),
):
    node, parameters = graph_lstm(*shapes)
    graph(name, (STEPS, STATE, node), *says, parameters=parameters, code=code)
for name, nodes, *says in (
    ("a padded convolution", (IMAGE, graph_node("conv2d", {"input": value("i"), "weight": {"parameter": "k"}, "padding": [20000, 20000]}, SMALL)), "2×1×40007×40007; the file says 2×1×2×2"),
    ("a dilation that overflows", (IMAGE, graph_node("conv2d", {"input": value("i"), "weight": {"parameter": "k"}, "dilation": [1 << 62, 1]}, SMALL)), "the argument 'dilation'"),
    ("a strided convolution", (IMAGE, graph_node("conv_transpose2d", {"input": value("i"), "weight": {"parameter": "k"}, "stride": [4000, 4000]}, SMALL, overload="input")), "the file says 2×1×2×2"),
    ("a repeated tensor", (graph_node("repeat_interleave", {"self": value("x"), "repeats": 10000000, "dim": 1}, ("o", [[1, 0], [0, 64]]), overload="self_int"),), "2×640000000; the file says 2×64"),
    ("an average to many columns", (graph_node("adaptive_avg_pool1d", {"self": value("s"), "output_size": [100000000]}, ("o", [[1, 0], [0, 8], [0, 8]])),), "2×8×100000000; the file says 2×8×8"),
    ("a maximum of many places", (IMAGE, graph_node("adaptive_max_pool2d", {"self": value("i"), "output_size": [20000, 20000]}, SMALL, ("p", SMALL[1]))), "the file says 2×1×2×2"),
    ("a sum of a row and a column", (COLUMN, ROW, graph_node("add", {"self": value("c"), "other": value("r")}, ("o", [[0, 1]]), overload="Tensor")), "15000×15000; the file says 1"),
    ("a tensor in very many parts", (ENDLESS, graph_node("unbind", {"self": value("e")}, ("o", []), overload="int")), "which do not hold them"),
    ("a copy that is too large", (graph_node("expand", {"self": {"parameter": "one"}, "size": [1 << 31, 2]}, ("e", [[0, 1 << 31], [0, 2]])), graph_node("clone", {"self": value("e")}, ("o", [[0, 1 << 31], [0, 2]]))), "at most 2147483648 are allowed"),
):
    graph(name, (STEPS, *nodes) if name.startswith("an average") else nodes, *says)
X = {"self": value("x")}
for operator, overload, arguments, says in (
    ("from_file", "", {"filename": "/etc/passwd", "size": 8}, "has an argument 'filename'"),
    ("as_strided", "", X | {"size": [8], "stride": [1], "storage_offset": 1 << 30}, "looks at memory by strides"),
    ("as_strided_copy", "", X | {"size": [8], "stride": [1 << 30]}, "looks at memory by strides"),
    ("empty", "memory_format", {"size": [8]}, "makes a tensor without content"),
    ("empty_strided", "", {"size": [8], "stride": [1 << 30]}, "makes a tensor without content"),
    ("resize_", "", X | {"size": [1 << 30]}, "changes the size of memory"),
    ("set_", "source_Tensor", X | {"source": value("x")}, "changes the sizes of a tensor"),
    ("set_data", "", X | {"new_data": value("x")}, "returns no tensors"),
    ("abs", "out", X | {"out": value("x")}, "writes into what it is given"),
    ("_unsafe_index", "Tensor", X | {"indices": [value("x")]}, "is a part of operators"),
    ("_cdist_backward", "", {"grad": value("x")}, "is a part of operators"),
    ("max_pool2d_with_indices_backward", "", {"grad_output": value("x")}, "is a part of a backward"),
    ("native_group_norm", "", {"input": value("x"), "N": 1 << 30}, "is a part of an operator that checks shapes"),
    ("linalg_lu_solve", "", {"LU": value("x"), "pivots": value("x"), "B": value("x")}, "trusts the pivots"),
    ("lu_unpack", "", {"LU_data": value("x"), "LU_pivots": value("x")}, "trusts the pivots"),
    ("combinations", "", X | {"r": 1 << 40}, "takes as many steps as a number says"),
    ("lstm_cell", "", {"input": value("x"), "hx": [value("x")] * 2}, "trusts the shapes"),
    ("max_unpool2d", "", X | {"indices": value("x"), "output_size": [8, 8]}, "trusts the places"),
    ("special_hermite_polynomial_h", "n_scalar", {"x": value("x"), "n": 1 << 60}, "takes as many steps as a number says"),
    ("nonzero", "", X, "sizes depend on data"),
    ("item", "", X, "returns no tensors"),
    ("rand_like", "", X, "draws random numbers"),
    ("normal_", "", X, "writes into what it is given"),
    ("record_stream", "", X, "has an argument 's'"),
    ("to_sparse", "", X, "are not dense"),
    ("quantize_per_tensor", "", X | {"scale": 1.0, "zero_point": 0, "dtype": 13}, "packed numbers"),
    ("nanmedian", "", X, "does not say the sizes"),
    ("zeros", "", {"size": [4, 8], "layout": 1}, "the argument 'layout' is the stage's"),
    ("add_", "Tensor", {"self": {"parameter": "one"}, "other": 1}, "writes into the parameter 'one'"),
    ("cos", "", {"self": value("x")}, "the file says 2×8"),
):
    graph(f"a call of {operator}", (graph_node(operator, arguments, ("o", [[1, 0], [0, 8]]), overload=overload),), says)


def whole(name, size, operator, arguments, overload=""):
    """A node that makes integers of the batch's independent sizes."""
    node = graph_node(operator, arguments, (name, [[0, each] for each in size]), overload=overload)
    return node | {"outputs": [each | {"type": "int64"} for each in node["outputs"]]}


def divided(operator, by, mode, overload="Tensor_mode"):
    """The least integers divided by a number, or by a tensor of -1."""
    least, minus = (whole(name, [4], "full", {"size": [4], "fill_value": number, "dtype": {"type": "int64"}}) for name, number in (("a", -(1 << 63)), ("b", -1)))
    return least, minus, whole("q", [4], operator, {"self": value("a"), "other": by, "rounding_mode": mode}, overload)


# The processor ends a process that divides the least integer by -1.
for name, nodes, *says in (
    ("by a tensor", divided("div", value("b"), "trunc"), "with rounding_mode 'trunc' by a tensor"),
    ("by a tensor in place", divided("div_", value("b"), "trunc"), "with rounding_mode 'trunc' by a tensor"),
    ("by -1", divided("divide", -1, "trunc", "Scalar_mode"), "with rounding_mode 'trunc' by -1"),
    ("by -1 as a tensor", divided("divide", -1, "trunc"), "with rounding_mode 'trunc' by -1"),
    ("by a number that wraps to -1", divided("div", (1 << 32) - 1, "trunc"), "with rounding_mode 'trunc' by 4294967295"),
    ("by 0", divided("div", 0, "trunc"), "ZeroDivisionError"),
    ("by 2", divided("div", 2, "trunc")),
    ("by -1 downwards", divided("div", value("b"), "floor")),
):
    graph(f"integers divided {name}", nodes, *says, code=DATA if says else FINE)
graph("floats divided to zero", (graph_node("div", X | {"other": value("x"), "rounding_mode": "trunc"}, ("o", [[1, 0], [0, 64]]), overload="Tensor_mode"),), code=FINE)
POOLED = whole("a", [1, 1, 2, 2], "full", {"size": [1, 1, 2, 2], "fill_value": -(1 << 63), "dtype": {"type": "int64"}})
graph("an average of integers divided by -1", (POOLED, whole("q", [1, 1, 2, 2], "avg_pool2d", {"self": value("a"), "kernel_size": [1, 1], "divisor_override": -1})), "by divisor_override -1", code=DATA)
# An operator within whose steps more memory would be taken than any result says.
def apart(places):
    """The distances of that many numbers from each other's, of which only their sums are results."""
    wide = graph_node("expand", {"self": {"parameter": "one"}, "size": [places]}, ("e", [[0, places]]))
    tall = graph_node("unsqueeze", {"self": value("e"), "dim": 1}, ("f", [[0, places], [0, 1]]))
    flat = graph_node("unsqueeze", {"self": value("e"), "dim": 0}, ("g", [[0, 1], [0, places]]))
    return wide, tall, flat, graph_node("pairwise_distance", {"x1": value("f"), "x2": value("g")}, ("o", [[0, places]]))


graph("steps within an operator", apart(1 << 10), code=FINE)
graph("larger steps within an operator", apart(1 << 16), "at most 2147483648 are allowed")

# --- texts -------------------------------------------------------------------------------------------------------------

TEXT = "dataset: {name: text, root: d, tokens: 8%s}\nmodel: {name: gpt}\nloader: {batch_size: 1}\n"


def text(name, content, *says, options="", file="input.txt", **more):
    add(f"text: {name}", {f"d/{file}": content}, TEXT % options, *says, **more)


for name, content, says in (
    ("empty", b"", "is empty"), ("too short", b"abc", "tokens"), ("latin-1", b"line\n" * 100 + b"caf\xe9\n", "line 101"), ("zeros", bytes(10), "1 token, but"), ("UTF-16", "text\n".encode("utf-16") * 50, "UTF-8"),
    ("overlong", b"a" * 100 + b"\xc0\xaf", "UTF-8"), ("surrogate", b"a" * 100 + b"\xed\xa0\x80", "UTF-8"), ("cut character", b"a" * 100 + b"\xe2\x82", "UTF-8"),
):
    text(name, content, "input.txt", says)
text("a sparse TB", hole(1 << 40), "input.txt", "at most")
text("64 MB of line ends", b"\n" * (64 * MIB), "no text", size=64 * MIB)
for name, make in SPECIAL:
    text(name, make, "d")
ZEROS = gzip.compress(b"a" * (300 * MIB), 9)
for name, content, says in (
    ("a bomb", ZEROS, "more than"), ("a bomb of two members", gzip.compress(b"a" * (150 * MIB), 9) * 2, "more than"), ("cut", gzip.compress(b"abc " * 1000)[:-9], "truncated"), ("not gzip", b"abc" * 100, "gzip"), ("empty", b"", "gzip"),
    ("behind it", gzip.compress(b"abc " * 1000) + b"\0\0\0", "follow"),
):
    text(f"gzipped, {name}", content, "input.txt.gz", says, file="input.txt.gz", limit=160 * MIB)

BYTES = {chr(b if 33 <= b < 127 or 161 <= b and b != 173 else 256 + n): None for n, b in enumerate(range(256))}
SPELLED, unused = [], 256
for byte in range(256):
    printable = 33 <= byte < 127 or (byte > 160 and byte != 173)
    SPELLED.append(chr(byte if printable else unused))
    unused += not printable
VOCABULARY = {token: i for i, token in enumerate(SPELLED)}
BPE = {"bpe/encoder.json": json.dumps(VOCABULARY), "bpe/vocab.bpe": "#version: 0.2\n", "bpe/dict.txt": "".join(f"{i} 1\n" for i in range(256))}
WORDS = "word and word\n" * 100


def bpe(name, files, *says, **more):
    add(f"bpe: {name}", {"d/input.txt": WORDS} | BPE | files, TEXT % ", tokenizer: bpe, bpe: bpe", *says, **more)


bpe("whole", {}, code=FINE, seconds=20)
for name, content, says in (
    ("empty", b"", "is empty"), ("a list", "[1]", "JSON object"), ("cut", json.dumps(VOCABULARY)[:-5], "JSON object"), ("a number", "7", "JSON object"), ("no bytes", "{}", "byte 0"), ("a byte missing", json.dumps({k: v for k, v in list(VOCABULARY.items())[:-1]}), "byte 255"),
    ("ids of texts", json.dumps({k: str(v) for k, v in VOCABULARY.items()}), "must be an integer"), ("ids negative", json.dumps(VOCABULARY | {"ab": -1}), "-1"), ("ids broken", json.dumps(VOCABULARY | {"ab": 1.5}), "1.5"), ("ids of 2^63", json.dumps(VOCABULARY | {"ab": 1 << 63}), "must be"),
    ("ids beyond", json.dumps(VOCABULARY | {"ab": 9999}), "9999"), ("ids twice", json.dumps(VOCABULARY | {"ab": 5}), "two tokens"), ("an empty token", json.dumps(VOCABULARY | {"": 256}), "empty token"), ("a token of no bytes", json.dumps(VOCABULARY | {"日本": 256}), "no byte"),
    ("deep", "[" * 1_000_000, "JSON object"), ("an id that is deep", '{"a": ' + "[" * 1000 + "]" * 1000 + "}", "must be"), ("17 MB", " " * (17 * MIB) + "{}", "at most"),
):
    bpe(f"encoder.json {name}", {"bpe/encoder.json": content}, "encoder.json", *([says] if says else []), size=17 * MIB if name == "17 MB" else 0)
for name, content, says in (("empty", "", "empty"), ("no version", "a b\n", "#version"), ("three tokens", "#version: 0.2\na b c\n", "line 2"), ("unknown token", "#version: 0.2\na b\n", "line 2"), ("binary", b"#version\n\xff\xfe", "line 2")):
    bpe(f"vocab.bpe {name}", {"bpe/vocab.bpe": content}, "vocab.bpe", says)
for file in ("encoder.json", "vocab.bpe"):
    for name, make in SPECIAL[:4]:
        bpe(f"{file} {name}", {f"bpe/{file}": make}, file)

# --- GLUE, translation, IMDB ----------------------------------------------------------------------------------------------

COLA = "dataset: {name: cola, root: d, bpe: bpe, tokens: 16}\nmodel: {name: roberta}\nloader: {batch_size: 2}\n"
RTE = COLA.replace("cola", "rte")
LINE = "gj04\t1\t\tA sentence.\n"


def glue(name, train, *says, experiment=COLA, dev=LINE * 4, files=None, **more):
    add(f"glue: {name}", {"d/train.tsv": train, "d/dev.tsv": dev} | BPE | (files or {}), experiment, *says, **more)


for name, train, says in (
    ("empty", "", "is empty"), ("three columns", LINE + "a\t1\tb\n", "line 2"), ("five columns", LINE.strip() + "\tx\n", "line 1"), ("label 2", "a\t2\t\tb\n", "label '2'"), ("label empty", "a\t\t\tb\n", "label ''"),
    ("label of 1 MB", f"a\t{'x' * 1_000_000}\t\tb\n", "line 1"), ("latin-1", b"a\t1\t\tcaf\xe9\n", "line 1"), ("binary", bytes(range(256)), "UTF-8"), ("only line ends", "\n\n\n", "line 1"), ("a million tabs", "\t" * 1_000_000, "line 1"),
):
    glue(name, train, "train.tsv", says)
glue("rte without its header", LINE, "not the header", experiment=RTE)
glue("rte with the header only", "index\tsentence1\tsentence2\tlabel\n", "no sentences", experiment=RTE)
for name, make in SPECIAL[:5]:
    glue(name, make, "train.tsv")
for name, content, says in (("three columns", "1 2 3\n", "line 1"), ("beyond", "9999 1\n", "token 9999"), ("twice", "1 1\n1 1\n", "line 2"), ("short", "1 1\n", "no line for token")):
    glue(f"dict.txt {name}", LINE * 4, "dict.txt", says, files={"bpe/dict.txt": content})

TRANSLATION = "dataset: {name: translation, root: d, merges: 10%s}\nmodel: {name: gnmt8}\nloader: {batch_size: 2}\n"
PAIRS = {f"d/{part}.{side}": "a small house\n" * 8 for part in ("train", "test") for side in ("en", "de")}


def translation(name, files, *says, options="", **more):
    add(f"translation: {name}", PAIRS | files, TRANSLATION % options, *says, **more)


translation("lines differ", {"d/train.de": "ein Haus\n" * 7}, "train.de", "7 lines")
translation("empty", {"d/train.en": ""}, "train.en")
translation("latin-1", {"d/train.de": b"h\xe4user\n" * 8}, "train.de", "line 1")
translation("only line ends", {f"d/train.{side}": b"\n" * (32 * MIB) for side in ("en", "de")}, "no text", size=32 * MIB)
for name, make in SPECIAL[:5]:
    translation(name, {"d/train.de": make}, "train.de")
for name, content, says in (("empty", "", "empty"), ("no version", "a b\n", "#version"), ("one symbol", "#version: 0.2\na\n", "line 2"), ("three symbols", "#version: 0.2\na b c\n", "line 2"), ("binary", b"\xff\xff", "UTF-8")):
    translation(f"codes {name}", {"c": content}, "c", says, options=", codes: c")

IMDB = "dataset: {name: imdb, root: d, tokens: 8}\nmodel: {name: transformer}\nloader: {batch_size: 2}\n"
REVIEWS = {f"d/{split}/{side}/{i}_7.txt": "good film" for split in ("train", "test") for side in ("neg", "pos") for i in range(2)}


def imdb(name, files, *says, **more):
    add(f"imdb: {name}", files, IMDB, *says, **more)


imdb("a name without a number", REVIEWS | {"d/train/neg/x.txt": "bad"}, "train/neg/x.txt", "ID_RATING")
imdb("a number of 30 digits", REVIEWS | {f"d/train/neg/{'9' * 30}_1.txt": "bad"}, "ID_RATING")
imdb("latin-1", REVIEWS | {"d/train/neg/9_1.txt": b"caf\xe9"}, "9_1.txt", "UTF-8")
imdb("no positive ones", {name: content for name, content in REVIEWS.items() if "/pos/" not in name}, "no reviews")
imdb("a review of 2 MB", REVIEWS | {"d/train/neg/9_1.txt": b"a " * MIB}, "9_1.txt", "at most")
imdb("a sparse TB", REVIEWS | {"d/train/neg/9_1.txt": hole(1 << 40)}, "9_1.txt", "at most")
imdb("folders in a circle", REVIEWS | {"d/train/neg/loop": link("..")}, "circle")
imdb("a FIFO among them", REVIEWS | {"d/train/neg/9_1.txt": fifo}, code=FINE, seconds=20)
imdb("archive cut", {"d/aclImdb_v1.tar.gz": TAR[:100]}, "aclImdb_v1.tar.gz", "truncated")
imdb("archive without reviews", {"d/aclImdb_v1.tar.gz": TAR}, "no reviews")
imdb("archive leads out", {"d/aclImdb_v1.tar.gz": tar(member("a/train/neg/../../../9_1.txt", b"x"))}, "leads out")
imdb("archive of 20,000 times one name", {"d/aclImdb_v1.tar.gz": tar(*[member("a/train/neg/1_1.txt", b"x" * 1000)] * 20_000)}, "no reviews", limit=64 * MIB)

# --- images ---------------------------------------------------------------------------------------------------------------------


def segment(marker, content):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content


def jpeg(width=8, height=8, components=1, kind=0xC0, scan=b"\x3f", scans=1):
    """Every code is a single zero bit."""
    table = bytes([1]) + bytes(15) + b"\0"
    frame = struct.pack(">BHHB", 8, height, width, components) + b"".join(bytes([c + 1, 0x11, 0]) for c in range(components))
    begin = segment(0xDB, b"\0" + b"\1" * 64) + segment(kind, frame) + segment(0xC4, b"\0" + table) + segment(0xC4, b"\x10" + table)
    selected = bytes([components]) + b"".join(bytes([c + 1, 0]) for c in range(components))
    last = 0 if kind == 0xC2 else 63
    return b"\xff\xd8" + begin + (segment(0xDA, selected + bytes([0, last, 0])) + scan) * scans + b"\xff\xd9"


def chunk(name, content, sum_=None):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content) if sum_ is None else sum_)


def png(width=8, height=8, depth=8, colour=2, interlace=0, data=None, before=b"", after=b""):
    rows = data if data is not None else zlib.compress((b"\0" + bytes(width * 3)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)) + before + chunk(b"IDAT", rows) + after + chunk(b"IEND", b"")


IMAGES_OF = "dataset: {name: imagenet_folder, root: d, size: 8, augment: false}\nmodel: {name: cnn, size: 8, classes: 2, width: 0.1}\nloader: {batch_size: 2}\ntrain: {epochs: 1}\n"
FOLDERS = {f"d/{split}/{kind}/ok.png": png() for split in ("train", "val") for kind in ("a", "b")}


def image(name, content, *says, file="x.jpg", **more):
    add(f"image: {name}", FOLDERS | {f"d/train/a/{file}": content}, IMAGES_OF, file, *says, command=RUN, **more)


JPEG, PNG = jpeg(), png()
add("image: whole", FOLDERS | {"d/train/a/x.jpg": JPEG}, IMAGES_OF, command=RUN, code=FINE, seconds=20)
for name, content in (("empty", b""), ("text", b"no image"), ("GIF", b"GIF89a" + bytes(20)), ("WebP", b"RIFF\0\0\0\0WEBP"), ("TIFF", b"II*\0" + bytes(20)), ("SVG", b"<svg/>"), ("zip", b"PK\x03\x04"), ("zeros", bytes(1000)), ("JPEG's first bytes", b"\xff\xd8\xff"), ("PNG's first bytes", PNG[:8])):
    image(name, content)
for at in (4, 10, 60, 75, 95, 120, 135):
    image(f"JPEG cut after {at} bytes", JPEG[:at])
image("JPEG without quantization", JPEG.replace(segment(0xDB, b"\0" + b"\1" * 64), b""))
image("JPEG without a frame", b"\xff\xd8" + JPEG[JPEG.index(b"\xff\xc4") :])
image("JPEG with two frames", JPEG.replace(b"\xff\xc4", jpeg()[jpeg().index(b"\xff\xc0") : jpeg().index(b"\xff\xc4")] + b"\xff\xc4", 1))
image("JPEG of 2 components", jpeg(components=2))
image("JPEG of 255 components", b"\xff\xd8" + segment(0xC0, struct.pack(">BHHB", 8, 8, 8, 255) + bytes(765)))
image("JPEG of no width", jpeg(width=0))
image("JPEG of no height", jpeg(height=0))
image("JPEG of 12 bits", JPEG.replace(b"\x08\0\x08\0\x08", b"\x0c\0\x08\0\x08"))
image("JPEG lossless", jpeg(kind=0xC3))
for width, height in ((65500, 65500), (11000, 11000), (8001, 8000)):
    image(f"JPEG of {width} × {height}", jpeg(width, height), "64000000")
    image(f"progressive JPEG of {width} × {height}", jpeg(width, height, 3, 0xC2), "64000000")
image("JPEG of 64 million pixels in 200 bytes", jpeg(8000, 8000), "truncated")
image("progressive JPEG of 64 million pixels in 200 bytes", jpeg(8000, 8000, 3, 0xC2), "truncated")
image("progressive JPEG of 36 million pixels, cut", jpeg(6000, 6000, 1, 0xC2, bytes(9 * 8000))[:60_000])
image("progressive JPEG of 36 million pixels", jpeg(6000, 6000, 1, 0xC2, bytes(9 * 8000)), code=FINE, limit=36 * 11 * MIB, seconds=20)
image("JPEG of 2,000 scans", jpeg(512, 512, 1, 0xC2, bytes(513), 2000), seconds=4, limit=8 * MIB)
for at in (12, 20, 33, 40, 60, len(PNG) - 13, len(PNG) - 5):
    image(f"PNG cut after {at} bytes", PNG[:at], file="x.png")
for width, height in ((100_000, 100_000), (0x7FFFFFFF, 0x7FFFFFFF), (8001, 8000), (1_000_000, 65)):
    image(f"PNG of {width} × {height}", png(width, height, data=b""), file="x.png")
for name, content in (
    ("no width", png(0, 8)), ("no height", png(8, 0)), ("negative width", png(0x80000000, 8, data=b"")), ("wrong checksum", PNG[:29] + b"\0\0\0\0" + PNG[33:]), ("depth 3", png(depth=3)), ("colour 5", png(colour=5)), ("interlace 7", png(interlace=7)),
    ("no palette", png(colour=3)), ("data that are none", png(data=b"xxxxxxxx")), ("data too short", png(data=zlib.compress(b"\0" * 10))), ("no data", png(data=b"")), ("a chunk of 2 GB", PNG[:33] + b"\x7f\xff\xff\xffIDAT"), ("two headers", png(before=PNG[8:33])),
    ("64 million pixels in 100 bytes", png(8000, 8000, data=b"x" * 30)), ("filter 9", png(data=zlib.compress((b"\x09" + bytes(24)) * 8))), ("critical chunk", png(before=chunk(b"ABCD", b"x"))),
):
    image(f"PNG: {name}", content, file="x.png")
BOMB = zlib.compress(bytes(100 * MIB), 9)
for name, before in (("zTXt", chunk(b"zTXt", b"k\0\0" + BOMB)), ("iTXt", chunk(b"iTXt", b"k\0\1\0\0\0" + BOMB)), ("iCCP", chunk(b"iCCP", b"k\0\0" + BOMB)), ("10,000 texts", chunk(b"tEXt", b"k\0v") * 10_000)):
    add(f"image: PNG with a bomb of {name}", FOLDERS | {"d/train/a/x.png": png(before=before)[:-20]}, IMAGES_OF, "x.png", command=RUN, limit=16 * MIB)
image("a sparse TB", hole(1 << 40, b"\xff\xd8\xff"), "at most")
for name, make in SPECIAL[:5]:
    add(f"image: only {name}", {name: content for name, content in FOLDERS.items() if "train/a" not in name} | {"d/train/a/x.jpg": make}, IMAGES_OF, "class a has no images")
add("image: folders in a circle", FOLDERS | {"d/train/a/loop": link("..")}, IMAGES_OF, "circle")
add("image: two circles", FOLDERS | {"d/train/a/one": link("."), "d/train/a/two": link(".")}, IMAGES_OF, "circle")
add("image: a class without images", FOLDERS | {"d/train/c": folder}, IMAGES_OF, "class c")
add("image: a class of the test only", FOLDERS | {"d/val/c/x.png": PNG}, IMAGES_OF, "train/c")

FOOD = "dataset: {name: food101, root: d, size: 8}\nmodel: {name: cnn, size: 8, classes: 2}\nloader: {batch_size: 1}\n"
LISTS = {"d/meta/classes.txt": "a\nb\n", "d/meta/train.txt": "a/1\nb/1\n", "d/meta/test.txt": "a/1\n", "d/images/a/1.jpg": JPEG, "d/images/b/1.jpg": JPEG, "secret.jpg": JPEG}
for name, files, says in (
    ("no slash", {"d/meta/train.txt": "a\n"}, "record 0"), ("unknown class", {"d/meta/train.txt": "a/1\nc/1\n"}, "record 1"), ("missing image", {"d/meta/train.txt": "a/2\n"}, "record 0"), ("empty", {"d/meta/train.txt": "\n"}, "empty"),
    ("leads out", {"d/meta/train.txt": "a/../../../secret\n"}, "leads out"), ("class that leads out", {"d/meta/classes.txt": "..\n", "d/meta/train.txt": "../../secret\n", "d/meta/test.txt": "../../secret\n"}, "leads out"), ("absolute", {"d/meta/train.txt": "a//etc/passwd\n"}, "record 0"),
    ("9 MB of lines", {"d/meta/train.txt": b"a/1\n" * 2_400_000}, "at most"), ("a FIFO", {"d/meta/train.txt": fifo}, "train.txt"), ("a device", {"d/meta/train.txt": link("/dev/zero")}, "train.txt"),
):
    add(f"food101: {name}", LISTS | files, FOOD, *([says] if says else []))

TINY = "dataset: {name: tiny_imagenet, root: d}\nmodel: {name: cnn, size: 64, classes: 2, width: 0.1}\nloader: {batch_size: 2}\n"
TREE = {"wnids.txt": "n1\nn2\n", "train/n1/images/n1_0.JPEG": JPEG, "train/n2/images/n2_0.JPEG": JPEG, "val/images/v.JPEG": JPEG, "val/val_annotations.txt": "v.JPEG\tn1\t0\t0\t1\t1\n"}


def tiny(name, files, *says, **more):
    add(f"tiny_imagenet: {name}", {f"d/{file}": content for file, content in files.items()}, TINY, *says, **more)


for name, files, says in (
    ("no classes", {"wnids.txt": ""}, "no class"), ("class without images", {"wnids.txt": "n1\nn2\nn3\n"}, "n3"), ("image of no class", {"train/n9/images/x.JPEG": JPEG}, "n9"), ("annotation of one column", {"val/val_annotations.txt": "v.JPEG\n"}, "record 0"),
    ("annotation of no class", {"val/val_annotations.txt": "v.JPEG\tn9\n"}, "n9"), ("annotation of no file", {"val/val_annotations.txt": "w.JPEG\tn1\n"}, "w.JPEG"), ("annotation twice", {"val/val_annotations.txt": "v.JPEG\tn1\nv.JPEG\tn1\n"}, "twice"),
    ("annotation that leads out", {"val/val_annotations.txt": "../../../../etc/passwd\tn1\n"}, "record 0"), ("no annotations", {"val/val_annotations.txt": ""}, "no images"), ("5 MB of classes", {"wnids.txt": b"\n" * (5 * MIB)}, "at most"), ("an image of 2 MB", {"train/n1/images/x.JPEG": bytes(2 * MIB)}, "at most"),
):
    tiny(name, TREE | files, says)


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


ZIP = zipped({f"t/{name}": content for name, content in TREE.items()})
END, DIRECTORY = ZIP.rindex(b"PK\5\6"), ZIP.index(b"PK\1\2")


def patched(content, at, new):
    return content[:at] + new + content[at + len(new) :]


for name, content, says in (
    ("whole", ZIP, None), ("no end", ZIP[:END], "directory"), ("cut in half", ZIP[: len(ZIP) // 2], "directory"), ("cut in the end", ZIP[:-5], "directory"), ("directory beyond", patched(ZIP, END + 16, b"\xff\xff\xff\x7f"), "truncated"), ("directory of 4 GB", patched(ZIP, END + 12, b"\xff\xff\xff\xff"), "truncated"),
    ("zip64 without its record", patched(ZIP, END + 16, b"\xff\xff\xff\xff"), "truncated"), ("directory that is none", patched(ZIP, DIRECTORY, b"XXXX"), "directory"), ("name beyond", patched(ZIP, DIRECTORY + 28, b"\xff\xff"), "directory"), ("encrypted", patched(ZIP, DIRECTORY + 8, b"\1\0"), "encrypted"),
    ("method 97", patched(patched(ZIP, 8, b"\x61\0"), DIRECTORY + 10, b"\x61\0"), "otherwise than stored or deflated"), ("wrong checksum", patched(ZIP, DIRECTORY + 16, b"\0\0\0\0"), "does not unpack"), ("packed size beyond", patched(ZIP, DIRECTORY + 20, b"\xff\xff\xff\x7f"), "does not unpack"), ("unpacked size of 4 GB", patched(patched(ZIP, 22, b"\xff\xff\xff\xff"), DIRECTORY + 24, b"\xff\xff\xff\xff"), "at most"),
    ("unpacked size too small", patched(ZIP, DIRECTORY + 24, b"\1\0\0\0"), "does not unpack"), ("header beyond", patched(ZIP, DIRECTORY + 42, b"\xff\xff\xff\x7f"), "truncated"), ("header that is none", patched(ZIP, DIRECTORY + 42, struct.pack("<I", 5)), ""), ("a bomb", zipped({"t/train/n1/images/x.JPEG": bytes(100 * MIB)}), "at most"),
    ("many bombs", zipped({f"t/train/n1/images/{i}.JPEG": bytes(MIB - 1) for i in range(40)} | {"t/wnids.txt": "n1\n"}), "annotations"), ("only the end", b"PK\5\6" + bytes(18), "directory"), ("nothing behind its first bytes", b"PK\3\4", "directory"), ("leads out", zipped({"t/../../../etc/x": b"a"}), "leads out"),
):
    fine = {"code": FINE, "seconds": 20} if says is None else {}
    tiny(f"zip, {name}", {"tiny-imagenet-200.zip": content}, *([says] if says else []), limit=48 * MIB, **fine)
for name, make in SPECIAL[:5]:
    tiny(f"zip is {name}", {"tiny-imagenet-200.zip": make}, "d")

# --- profiles, hardware, costs: YAML that is not an experiment -----------------------------------------------------------------

PROFILED = "model: {name: mlp}\npipeline: {stages: 2, balance: time, cut: {profile: p.yaml}}\n"
MEASURED = "model: {name: mlp}\npipeline: {stages: 2}\n"
for name, content, says in (
    ("empty", "", "p.yaml"), ("only a comment", "# nothing\n", "p.yaml"), ("a list", "[1]\n", "p.yaml"), ("a text", "abc\n", "p.yaml"), ("of another kind", "model: mlp\n", "p.yaml"), ("another format", "pipewright_profile: 2\n", "p.yaml:1:21"), ("layers a number", "pipewright_profile: 1\nlayers: 7\n", "p.yaml:2:9"),
    ("layers empty", "pipewright_profile: 1\nlayers: []\n", "p.yaml"), ("a layer a number", "pipewright_profile: 1\nlayers: [7]\n", "p.yaml"), ("negative time", "pipewright_profile: 1\nlayers: [{name: a, forward: -1}]\n", "p.yaml:2:"), ("huge time", "pipewright_profile: 1\nlayers: [{name: a, forward: 1e400}]\n", "p.yaml:2:"),
    ("broken YAML", "pipewright_profile: [\n", "p.yaml"), ("not UTF-8", b"\xff\xfe", "p.yaml"), ("20 MB", hole(20 * MIB), "p.yaml"), ("a million layers", "layers: [" + "{}," * 300_000 + "{}]", "p.yaml"),
):
    add(f"profile: {name}", {"p.yaml": content}, PROFILED, says, code=EXPERIMENT)
for name, make in SPECIAL:
    add(f"profile: {name}", {"p.yaml": make}, PROFILED, "p.yaml", code=EXPERIMENT)
HARDWARE = ("simulate", "x.yaml", "--hardware", "h.yaml")
for name, content in (
    ("empty", ""), ("a list", "[1]\n"), ("unknown key", "zzz: 1\n"), ("hosts negative", "hosts: -1\n"), ("hosts huge", "hosts: 1000000000\n"), ("4 billion devices", "hosts: 65536\ndevices: {count: 65536}\n"), ("speed of 0", "devices: {speed: 0}\n"),
    ("speeds of texts", "devices: {count: 2, speeds: [a, b]}\n"), ("speeds too few", "devices: {count: 2, speeds: [1]}\n"), ("links a number", "links: 7\n"), ("a link from nowhere", "devices: {count: 2}\nlinks: [{from: 9, to: 1}]\n"), ("a bus of texts", "buses: [a]\n"), ("NaN", "devices: {speed: .nan}\n"),
    ("broken YAML", "devices: {\n"), ("not UTF-8", b"\xff"), ("20 MB", hole(20 * MIB)),
):
    add(f"hardware: {name}", {"h.yaml": content}, MEASURED, "" if name == "empty" else "h.yaml", command=HARDWARE, code=EXPERIMENT, seconds=4)
for name, make in SPECIAL:
    add(f"hardware: {name}", {"h.yaml": make}, MEASURED, "h.yaml", command=HARDWARE, code=EXPERIMENT)

# --- what a run has left, tampered with ---------------------------------------------------------------------------------------------

TRAINED = "model: {name: mlp}\nloader: {limit_train: 64, limit_test: 32}\npipeline: {stages: 2}\ntrain: {epochs: 2}\n"
SEED = Path(tempfile.mkdtemp(prefix="pipewright-attack-seed-"))


def trained():
    """A finished run, made once."""
    (SEED / "x.yaml").write_text(TRAINED)
    done = subprocess.run([BINARY, "run", "x.yaml", "--quiet", "--out", "out"], cwd=SEED, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"the run to tamper with cannot be made: {done.stderr}")
    manifest = next((SEED / "out" / "checkpoint").rglob("manifest.json"), None)
    return SEED / "out", manifest


def tampered(name, change, *says, command=("run", "x.yaml", "--out", "out", "--resume", "--quiet"), experiment=TRAINED.replace("epochs: 2", "epochs: 3"), **more):
    """`change` is given the copied folder of the run."""

    def make(path):
        shutil.copytree(SEED / "out", path, symlinks=True)
        change(path)

    add(f"run folder: {name}", {"out": make}, experiment, *says, command=command, **more)


def replace(file, content):
    def change(path):
        target = next(iter(path.rglob(file)))
        target.unlink()
        attack.put(target.parent, {target.name: content})

    return change


def every(pattern, content):
    def change(path):
        for target in list(path.rglob(pattern)):
            target.unlink()
            attack.put(target.parent, {target.name: content})

    return change


def cut(pattern, keep):
    def change(path):
        for target in path.rglob(pattern):
            target.write_bytes(target.read_bytes()[: keep(target.stat().st_size)])

    return change


def edited(pattern, old, new):
    def change(path):
        for target in path.rglob(pattern):
            target.write_text(target.read_text().replace(old, new))

    return change


def run_folders():
    if len(sys.argv) > 1 and "--list" in sys.argv:
        (SEED / "out/checkpoint").mkdir(parents=True)
    else:
        trained()
    broken = (("empty", b""), ("zeros", bytes(500)), ("a list", b"[1]"), ("cut", b'{"state": "do'), ("not UTF-8", b'{"\xff": 1}'), ("deep", b"[" * 100_000), ("20 MB", hole(20 * MIB)))
    for name, content in broken:
        tampered(f"manifest.json {name}", every("manifest.json", content), "manifest.json")
        tampered(f"run.json {name}, table", every("run.json", content), command=("table", "x.yaml", "--out", "out"), code=FINE, seconds=4)
    for name, make in SPECIAL:
        tampered(f"manifest.json {name}", every("manifest.json", make), "manifest.json")
        tampered(f"a part of the checkpoint {name}", every("stage-*.safetensors", make), "safetensors")
    for name, keep in (("empty", lambda size: 0), ("7 bytes", lambda size: 7), ("half", lambda size: size // 2), ("one short", lambda size: size - 1)):
        tampered(f"checkpoint cut to {name}", cut("stage-*.safetensors", keep), "safetensors")
        if name != "one short":  # but for the line's end it is whole
            tampered(f"manifest cut to {name}", cut("manifest.json", keep), "manifest.json")
    for name, old, new in (
        ("minibatches negative", '"minibatches":', '"minibatches":-'), ("minibatches a text", '"minibatches":', '"minibatches":"x","m":'), ("bytes huge", '"bytes":', '"bytes":9'), ("another name", '"name":"stage', '"name":"../stage'),
        ("absolute name", '"name":"', '"name":"/etc/'), ("no files", '"files":', '"fils":'), ("no checksum", '"checksum":', '"checksums":'), ("another identity", '"identity":"', '"identity":"0'),
    ):
        tampered(f"manifest: {name}", edited("manifest.json", old, new), "manifest.json")
    for name, make in (("half", None), ("a FIFO", fifo), ("/dev/zero", link("/dev/zero")), ("zeros", bytes(500))):
        change = cut("metrics.safetensors", lambda size: size // 2) if make is None else every("metrics.safetensors", make)
        tampered(f"metrics of the checkpoint {name}", change, "metrics.safetensors")
    # A resumed run writes both anew from the checkpoint, whatever was in them; but over a plain file only.
    for file in ("epochs.csv", "steps.csv"):
        for name, content in (("empty", b""), ("letters", b"epoch,train_loss\na,b\n"), ("too few columns", b"epoch,minibatch,loss\n1\n"), ("zeros", bytes(300)), ("a sparse TB", hole(1 << 40))):
            tampered(f"{file} {name}", every(file, content), code=FINE, seconds=20)
        for name, content in (("a FIFO", fifo), ("a device", link("/dev/zero")), ("a folder", folder)):
            tampered(f"{file} {name}", every(file, content), file, code=EXPERIMENT)

run_folders()

# --- runs that are taken to other programs -----------------------------------------------------------------------------------------------

HEADERS = {"epochs.csv": b"epoch,train_loss\n", "steps.csv": b"epoch,minibatch,loss\n", "probes.csv": b"epoch,minibatch,stage,probe,quantity,value\n"}
for form in ("csv", "tensorboard"):
    EXPORT = ("export", "out", "--format", form, "--output", "exported")
    tampered(f"exported as {form}", lambda path: None, command=EXPORT, code=FINE, seconds=4)
    for file, header in HEADERS.items():
        def put(content, file=file):
            return lambda path: ((path / file).unlink(missing_ok=True), attack.put(path, {file: content}))

        for name, content in (
            ("letters", header + b"0,a,b,c,d,e\n"), ("too few columns", header + b"1\n"), ("zeros", bytes(300) + b"\n"), ("a sparse TB", hole(1 << 40)),
            ("a sparse TB behind its header", hole(1 << 40, header)), *SPECIAL,
        ):
            nothing = name.startswith("a link to ")  # which is not there, under either name
            tampered(
                f"{file} {name}, exported as {form}", put(content), *(() if nothing else (file,)), command=EXPORT,
                code=FINE if nothing else DATA, seconds=4,
            )
    tampered(f"run.json cut, exported as {form}", cut("run.json", lambda size: size // 2), "run.json", command=EXPORT, seconds=4)

# --- numbers of others -------------------------------------------------------------------------------------------------------------------

PUBLISHED = TRAINED + "table: {rows: model.name, published: {file: p.csv, match: {model: model.name}, value: value}}\n"
for name, content, code, says in (
    ("empty", "", DATA, "p.csv"), ("a row too short", "model,value\nmlp\n", DATA, "p.csv:2:1: has"), ("a row too long", "model,value\nmlp,1,2\n", DATA, "p.csv:2:1: has"), ("no such column", "modle,value\nmlp,1\n", EXPERIMENT, "column 'model'"), ("contradictory", "model,value\nmlp,1\nmlp,2\n", EXPERIMENT, "different values"),
    ("a sparse TB", hole(1 << 40), DATA, "p.csv"), ("shadow", "root:$6$verysecret:19000:0:99999:7:::\nbin:*:1::::\n", EXPERIMENT, "no header"), ("passwd", "root:x:0:0:verysecret,,,:/root:/bin/sh\n", EXPERIMENT, "no header"), ("an open quote", 'model,value\n"mlp,1\n', DATA, "p.csv"),
):
    def with_numbers(path, content=content):
        shutil.copytree(SEED / "out", path)

    add(f"published: {name}", {"out": with_numbers, "p.csv": content}, PUBLISHED, *([says] if says else []), command=("table", "x.yaml", "--out", "out"), code=code or EXPERIMENT, never=("verysecret",), seconds=4)
for name, make in SPECIAL[:6]:
    add(f"published: {name}", {"out": lambda path: shutil.copytree(SEED / "out", path), "p.csv": make}, PUBLISHED, "p.csv", command=("table", "x.yaml", "--out", "out"), seconds=4)

if __name__ == "__main__":
    try:
        attack.main(CASES, 260, "hostile data")
    finally:
        shutil.rmtree(SEED, ignore_errors=True)
