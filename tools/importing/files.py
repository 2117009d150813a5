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


def write_safetensors(path, tensors):
    """Names to tensors, in order. The safetensors package is not needed."""
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
    write(path, struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write(path, content):
    """Replaces a file at once, so that none is ever half written."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)
