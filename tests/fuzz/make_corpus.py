#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the binary seeds that Python's standard library can pack, and those whose checksums must be right:

    tests/fuzz/make_corpus.py tests/fuzz/corpus

A seed called good-... is taken by its target, one called bad-... is refused. Equal versions of this file and of zlib
write equal seeds. Seeds that are plain text are kept as they are, and those of codec_loops, jpeg and codecs come from
make_corpus.cpp and make_frames.cpp.
"""
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile
import zlib

FOLDER = pathlib.Path(sys.argv[1])


def write(target, name, data):
    assert len(data) <= 4096, (target, name, len(data))
    path = FOLDER / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def gzipped(data, name=None):
    """A gzip member without a time; with a name in its header if there is one."""
    flags, extra = (8, name.encode() + b"\0") if name else (0, b"")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (struct.pack("<2sBBIBB", b"\x1f\x8b", 8, flags, 0, 2, 255) + extra + packer.compress(data) + packer.flush()
            + struct.pack("<II", zlib.crc32(data), len(data)))


# ---- tar ----

def tar_of(members, form=tarfile.USTAR_FORMAT):
    """Members are (name, content), or (name, None) for a folder; without times, owners and a filled last record."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    data = out.getvalue()
    return data[:len(data.rstrip(b"\0")) + 511 & ~511] + bytes(1024)


def with_tar_checksum(block):
    block = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def make_tars():
    plain = tar_of([("set/a.txt", b"alpha\n"), ("set/sub/b.bin", bytes(range(256)))])
    write("tar", "good-plain", plain)
    write("tar", "good-gzipped", gzipped(plain))
    write("tar", "good-empty", tar_of([]))
    write("tar", "good-folders-hidden-unwanted", tar_of(
        [("./set/", None), ("set/._a", b"x"), ("set/unwanted", b"y" * 10), ("set/c", b"")]))
    name = "set/" + "long/" * 24 + "name"
    write("tar", "good-pax-name", tar_of([(name, b"1")], tarfile.PAX_FORMAT))
    write("tar", "good-gnu-name", tar_of([(name, b"1")], tarfile.GNU_FORMAT))
    write("tar", "good-same-name-twice", tar_of([("set/a", b"1"), ("set/a", b"22")]))
    write("tar", "bad-truncated", plain[:700])
    write("tar", "bad-checksum", b"X" + plain[1:])
    write("tar", "bad-leads-out", tar_of([("set/../../a", b"1")]))
    link = tarfile.TarInfo("set/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    write("tar", "bad-link", link.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    write("tar", "bad-size", with_tar_checksum(plain[:124] + b"77777777777\0" + plain[136:512]) + plain[512:])
    write("tar", "bad-small-file-is-large", tar_of([("set/small", b"123456789")]))
    write("tar", "bad-gzip-checksum", gzipped(plain)[:-8] + bytes(8))
    write("tar", "bad-nothing", b"")
    # Whether such a name is read as it is or up to the NUL is nobody's promise.
    write("tar", "nul-in-name", tar_of([("set/" + "long/" * 20 + "a\0b", b"1")], tarfile.PAX_FORMAT))


# ---- zip ----

def zip_of(members, comment=b""):
    """Members are (name, content, how it is packed)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content, method in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
        archive.comment = comment
    return out.getvalue()


def make_zips():
    stored, deflated = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    plain = zip_of([("set/a.txt", b"alpha\n", stored), ("set/sub/b", b"b" * 500, deflated)])
    directory = plain.index(b"PK\x01\x02")
    write("zip", "good-plain", plain)
    write("zip", "good-comment", zip_of([("set/a", b"1", stored)], b"a comment"))
    write("zip", "good-folders-hidden-unwanted", zip_of(
        [("set/", b"", stored), ("set/.a", b"x", stored), ("set/unwanted", b"y", deflated), ("b", b"", stored)]))
    write("zip", "empty", zip_of([]))  # whether that is an archive is nobody's promise
    write("zip", "bad-truncated", plain[:-10])
    write("zip", "bad-data", plain.replace(b"alpha", b"gamma"))
    write("zip", "bad-method",
          plain[:8] + b"\x0c\0" + plain[10:directory + 10] + b"\x0c\0" + plain[directory + 12:])
    write("zip", "bad-encrypted", plain[:directory + 8] + b"\x01\0" + plain[directory + 10:])
    write("zip", "bad-size", plain[:directory + 24] + b"\xff\xff\xff\x7f" + plain[directory + 28:])
    write("zip", "bad-place", plain[:directory + 42] + b"\xff\xff\xff\x7f" + plain[directory + 46:])
    one = zip_of([("a", b"1", stored)])
    name = one.index(b"PK\x01\x02") + 28  # its length, and that of the extra field behind it
    write("zip", "empty-name", one[:name] + b"\0\0\x01\0" + one[name + 4:])
    write("zip", "bad-bomb", zip_of([("set/a", bytes(1 << 17), deflated)]))


# ---- gzip ----

def make_gzips():
    text = b"one line\nand another\n" * 5
    write("gzip", "good-text", gzipped(text))
    write("gzip", "good-name", gzipped(text, "text.txt"))
    write("gzip", "good-empty", gzipped(b""))
    write("gzip", "good-two-members", gzipped(text) + gzipped(b"more"))
    write("gzip", "bad-truncated", gzipped(text)[:-9])
    write("gzip", "bad-checksum", gzipped(text)[:-8] + b"\0\0\0\0" + gzipped(text)[-4:])
    write("gzip", "bad-followed", gzipped(text) + b"other bytes")
    write("gzip", "bad-plain", text)
    write("gzip", "bad-bomb", gzipped(bytes(1 << 18)))


# ---- png ----

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width, height, depth, colour, rows, extra=b"", interlaced=0, ends=True):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
            + extra + chunk(b"IDAT", zlib.compress(rows, 9)) + (chunk(b"IEND", b"") if ends else b""))


def pixels(height, row_bytes, filters=(0, 1, 2, 3, 4)):
    """Rows with each of the filters in turn."""
    return b"".join(bytes([filters[y % len(filters)]]) + bytes((y * 7 + x * 13) % 256 for x in range(row_bytes))
                    for y in range(height))


def make_pngs():
    grey, colour, palette, grey_alpha, colour_alpha = 0, 2, 3, 4, 6
    for depth in (1, 2, 4, 8, 16):
        write("png", f"good-grey-{depth}", png_of(9, 5, depth, grey, pixels(5, (9 * depth + 7) // 8)))
    for depth in (8, 16):
        write("png", f"good-colour-{depth}", png_of(7, 6, depth, colour, pixels(6, 7 * 3 * depth // 8)))
        write("png", f"good-grey-alpha-{depth}", png_of(4, 3, depth, grey_alpha, pixels(3, 4 * 2 * depth // 8)))
        write("png", f"good-colour-alpha-{depth}", png_of(4, 3, depth, colour_alpha, pixels(3, 4 * 4 * depth // 8)))
    table = chunk(b"PLTE", bytes(range(48)))
    write("png", "good-palette", png_of(6, 4, 4, palette, pixels(4, 3), table + chunk(b"tRNS", b"\0\x80")))
    interlaced = b"".join(pixels(h, w) for w, h in ((1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4)))
    write("png", "good-interlaced", png_of(8, 8, 8, grey, interlaced, interlaced=1))
    write("png", "good-metadata", png_of(2, 2, 8, grey, pixels(2, 2), chunk(b"gAMA", struct.pack(">I", 45455))
          + chunk(b"tEXt", b"Comment\0made for a test")))
    plain = png_of(7, 6, 8, colour, pixels(6, 21))
    write("png", "bad-truncated", plain[:-20])
    write("png", "bad-text-is-missing", plain[:33] + struct.pack(">I", 0x70000000) + b"tEXt" + plain[41:])
    for kind in (b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"sPLT"):
        write("png", f"bad-{kind.decode()}-is-missing", plain[:33] + struct.pack(">I", 0x7fffffff) + kind + plain[41:])
    write("png", "bad-checksum", plain[:-14] + b"\0\0" + plain[-12:])
    write("png", "bad-huge", png_of(100000, 100000, 8, grey, b"\0"))
    write("png", "bad-larger-than-its-bytes", png_of(5000, 5000, 1, grey, b"\0"))
    write("png", "bad-depth", png_of(2, 2, 3, grey, pixels(2, 2)))
    write("png", "bad-no-pixels", png_of(0, 2, 8, grey, b""))
    write("png", "bad-rows-missing", png_of(4, 4, 8, grey, pixels(1, 4)))
    write("png", "bad-other-format", b"GIF89a" + bytes(20))


# ---- idx, cifar ----

def idx_of(sizes, elements=None, kind=8):
    count = 1
    for size in sizes:
        count *= size
    data = bytes(i % 251 for i in range(count)) if elements is None else elements
    return struct.pack(">BBBB", 0, 0, kind, len(sizes)) + b"".join(struct.pack(">I", size) for size in sizes) + data


def make_idx():
    write("idx", "good-labels", idx_of([5]))
    write("idx", "good-images", idx_of([2, 3, 4]))
    write("idx", "good-28", idx_of([1, 28, 28]))
    write("idx", "good-nothing", idx_of([0]))
    write("idx", "bad-short", idx_of([5])[:-1])
    write("idx", "bad-long", idx_of([5]) + b"\0")
    write("idx", "bad-count", idx_of([6]))
    write("idx", "bad-floats", idx_of([5], kind=0x0d))
    write("idx", "bad-dimensions", idx_of([5, 1]))
    write("idx", "bad-header", b"\0\0\x08")
    write("idx", "bad-size", idx_of([0xffffffff], b""))


def make_cifar():
    planes = bytes(i % 253 for i in range(3072))
    write("cifar", "good-one-label", b"\x09" + planes)
    write("cifar", "good-two-labels", b"\x13\x63" + planes)
    write("cifar", "bad-label", b"\x0a" + planes)
    write("cifar", "bad-second-label", b"\x13\x64" + planes)
    write("cifar", "bad-truncated", b"\x09" + planes[:-1])
    write("cifar", "bad-empty", b"")


# ---- safetensors ----

def safetensors_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def make_safetensors():
    kinds = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
    header, data = {"__metadata__": {"format": "pt", "steps": "3"}}, b""
    for kind, size in kinds.items():
        header[kind.lower()] = {"dtype": kind, "shape": [2, 1], "data_offsets": [len(data), len(data) + 2 * size]}
        data += bytes(i % 2 for i in range(2 * size))
    write("safetensors", "good-all-types", safetensors_of(header, data))

    def one(shape=(2, 3), offsets=(0, 24), kind="F32", size=24):
        tensor = {"dtype": kind, "shape": list(shape), "data_offsets": list(offsets)}
        return safetensors_of({"w": tensor}, bytes(i % 256 for i in range(size)))

    write("safetensors", "good-one", one())
    write("safetensors", "good-scalar", one([], [0, 4], size=4))
    write("safetensors", "good-no-elements", one([0, 7], [0, 0], size=0))
    write("safetensors", "good-empty", safetensors_of({}))
    write("safetensors", "good-padded", safetensors_of(b'{}      '))
    write("safetensors", "good-escapes", safetensors_of(
        {"\u00e9\"\\\u0001": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"\x05"))
    write("safetensors", "bad-truncated", one()[:-1])
    write("safetensors", "bad-long", one(size=25))
    write("safetensors", "bad-type", one(kind="F8_E4M3", offsets=[0, 6], size=6))
    write("safetensors", "bad-shape", one([1 << 62, 1 << 62]))
    write("safetensors", "bad-hole", one(offsets=[4, 28], size=28))
    write("safetensors", "bad-bool", one([1], [0, 1], "BOOL", 0) + b"\x02")
    write("safetensors", "bad-length", safetensors_of({}, length=1 << 63))
    write("safetensors", "bad-json", safetensors_of(b'{"w": [}'))
    write("safetensors", "bad-negative", safetensors_of(b'{"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}'))
    twice = b'"w":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}'
    write("safetensors", "bad-twice", safetensors_of(b"{" + twice % (0, 1) + b"," + twice % (1, 2) + b"}", b"\1\2"))


# ---- manifest ----

def digest_of(value):
    """FNV-1a of the JSON with sorted keys, as the manifests' checksum is."""
    number = 0xcbf29ce484222325
    for byte in json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode():
        number = (number ^ byte) * 0x100000001b3 % (1 << 64)
    return f"{number:016x}"


def manifest_of(changes=None, checksum=None):
    value = {"minibatches": 12, "epochs": 3, "identity": "0123456789abcdef", "layout": {"stages": 2, "cut": ["a", "b"]},
             "slots": ["momentum"], "steps": {"name": "steps-000000.csv", "bytes": 120, "checksum": "89abcdef"},
             "files": [{"name": "stage-0.safetensors", "bytes": 800, "checksum": "01234567", "replica": 0, "steps": 12},
                       {"name": "stage-1.replica-1.safetensors", "bytes": 0, "checksum": "", "replica": 1, "steps": 0}]}
    value.update(changes or {})
    value = {key: field for key, field in value.items() if field != "absent"}
    checksum = checksum or digest_of(value)
    return (json.dumps({**value, "checksum": checksum}, separators=(",", ":")) + "\n").encode()


def make_manifests():
    write("manifest", "good-two-stages.json", manifest_of())
    write("manifest", "good-no-files.json", manifest_of({"files": [], "slots": [], "layout": {}}))
    write("manifest", "good-a-name-with-folders.json", manifest_of({"files": [
        {"name": "../../etc/passwd", "bytes": 1, "checksum": "00000000", "replica": 0, "steps": 1}]}))
    write("manifest", "bad-checksum.json", manifest_of(checksum="0" * 16))
    write("manifest", "bad-negative.json", manifest_of({"minibatches": -1}))
    write("manifest", "bad-epochs-beyond-32-bits.json", manifest_of({"epochs": 1 << 31}))
    write("manifest", "bad-replica-beyond-32-bits.json", manifest_of({"files": [
        {"name": "stage-0.safetensors", "bytes": 1, "checksum": "00000000", "replica": (1 << 32) + 1, "steps": 1}]}))
    write("manifest", "bad-missing.json", manifest_of({"identity": "absent"}))
    write("manifest", "bad-kind.json", manifest_of({"steps": []}))
    write("manifest", "bad-file.json", manifest_of({"files": [{"name": 5}]}))
    write("manifest", "bad-truncated.json", manifest_of()[:-30])


for make in (make_tars, make_zips, make_gzips, make_pngs, make_idx, make_cifar, make_safetensors, make_manifests):
    make()
