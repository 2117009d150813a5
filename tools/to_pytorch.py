#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives weights that the model `graph` has trained back to the PyTorch module that tools/import_torch.py imported.

    tools/to_pytorch.py net/ runs/mine/final.safetensors --out trained.safetensors

trained.safetensors then has every tensor of the module's state_dict() under its own name, in the module's order:

    module.load_state_dict(safetensors.torch.load_file("trained.safetensors"))

Parameters and batch-norm statistics are those that were trained; what training leaves alone (frozen parameters, buffers,
parts that only other outputs need, num_batches_tracked) is as it was imported. Needs Python 3.9 and nothing else.

Parameters that --untie made two of one go back only with --untied: a module that ties them would load both without a
complaint, keep one of them, and compute something else than what was trained. Untie the module first; of transformers' models
the configuration has tie_word_embeddings=False.

Exit codes: 0 fine, 2 wrong arguments, 3 a file is missing, damaged or does not fit.
"""

import argparse
import json
import os
import struct
import sys
from pathlib import Path

HEADER_LIMIT = 100 << 20  # bytes


class Refused(Exception):
    """Why, in one line."""


def read(path):
    """The bytes of a regular file; reading a FIFO would never end."""
    if path.exists() and not path.is_file():
        raise Refused(f"{path}: is no regular file")
    return path.read_bytes()


def tensors_of(path):
    """Name → (type, shape, bytes) of a safetensors file."""
    content = read(path)
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else HEADER_LIMIT
    if length >= min(HEADER_LIMIT, len(content)):
        raise Refused(f"{path}: is no safetensors file")
    try:
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        return {
            name: (entry["dtype"], entry["shape"], content[8 + length + entry["data_offsets"][0] : 8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path}: its header cannot be read: {error}") from None


def write(path, tensors):
    header, at = {}, 0
    for name, (kind, shape, blob) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(blob)]}
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    with open(part, "xb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, blob in tensors.values():
            file.write(blob)
    os.replace(part, path)


def graph_of(folder):
    path = folder / "graph.json"
    try:
        graph = json.loads(read(path))
        names, trained = graph["state"], graph["parameters"] | graph["buffers"]
        untied = graph.get("untied", {})  # further name → first name; an import before 1.0.0-rc.2 does not say
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{path}: is no graph with the names of a module's state ({error}); import the module again") from None
    return names, trained, untied


def check_untied(untied, held):
    """Refuses parameters that one module has as one, and that are no longer equal."""
    apart = [(name, first) for name, first in untied.items() if held[name] != held[first]]
    if apart:
        name, first = apart[0]
        raise Refused(
            f"'{name}' and '{first}' are one parameter of the module, and --untie trained them as two: the module as it was imported would "
            "load both and keep one. Untie it (transformers: tie_word_embeddings=False) and give --untied"
        )


def check_copies(weights, trained, expected):
    """Refuses copies of one parameter (`model.tie`) that are no longer equal; "wte.weight#2" is one of "wte.weight"."""
    for name, tensor in trained.items():
        first = name.partition("#")[0]
        if first != name and first in expected and tensor != trained[first]:
            raise Refused(
                f"{weights}: '{name}' and '{first}' are one parameter of the module, and model.tie: start trained them as two; "
                "expected model.tie: same or late, or an import with --untie"
            )


def state(folder, weights, untied_there):
    """The tensors of the module's state_dict()."""
    names, expected, untied = graph_of(folder)
    trained = tensors_of(weights)
    for name, shape in expected.items():
        if name not in trained:
            raise Refused(f"{weights}: has no '{name}', which {folder}/graph.json trains")
        if trained[name][1] != shape:
            raise Refused(f"{weights}: '{name}' has the shape {trained[name][1]}, in {folder}/graph.json {shape}")
    check_copies(weights, trained, expected)
    others = {}
    for file in ("constants.safetensors", "rest.safetensors"):
        if (folder / file).exists():
            others |= tensors_of(folder / file)
    held = others | {name: trained[name] for name in expected}
    missing = [name for name in names.values() if name not in held]
    if missing:
        raise Refused(f"{folder}: no file has '{missing[0]}', which the module's state needs")
    if not untied_there:
        check_untied(untied, held)
    return {name: held[where] for name, where in names.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that tools/import_torch.py has written")
    parser.add_argument("weights", type=Path, help="final.safetensors of a run")
    parser.add_argument("--out", required=True, type=Path, help="safetensors file to write")
    parser.add_argument(
        "--untied", action="store_true", help="the module that will load the file has parameters of its own where --untie made them"
    )
    given = parser.parse_args()
    try:
        made = state(given.folder, given.weights, given.untied)
        write(given.out, made)
    except Refused as refused:
        print(f"to_pytorch: {refused}", file=sys.stderr)
        sys.exit(3)
    except OSError as error:
        print(f"to_pytorch: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(3)
    print(f"{given.out}: {len(made)} tensors")


if __name__ == "__main__":
    main()
