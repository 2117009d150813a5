# SPDX-License-Identifier: Apache-2.0
"""Files of tensors, and files that are replaced at once."""

import json
import os
import struct

import torch

from importing.refusal import Refusal, type_name

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def safetensors(tensors):
    """The content of a file with those tensors, in order. The safetensors package is not needed."""
    header, at, blobs = {}, 0, []
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES:
            raise Refusal(f"'{name}' has the type {type_name(tensor.dtype)}; expected one of {', '.join(map(type_name, TYPES))}")
        blob = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)


def part_of(path):
    return path.with_name(path.name + ".part")


def write_part(path, content):
    """Writes the part file of a path. A link of that name is replaced and never followed."""
    part_of(path).unlink(missing_ok=True)
    with open(part_of(path), "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_all(folder, files, head, unfinished):
    """Replaces files of a folder, name → content or None for one that shall not be there.

    All content is on the disk before the first file changes. While they change, the file `head` is `unfinished`, which
    nothing reads as a whole; it takes its content last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, content in files.items():
            if content is not None:
                write_part(folder / name, content)
        write_part(folder / "unfinished", unfinished)
        os.replace(part_of(folder / "unfinished"), folder / head)
        for name in sorted(files, key=lambda each: each == head):
            if files[name] is None:
                (folder / name).unlink(missing_ok=True)
            else:
                os.replace(part_of(folder / name), folder / name)
    finally:
        for name in (*files, "unfinished"):
            part_of(folder / name).unlink(missing_ok=True)
