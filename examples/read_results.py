#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what Pipewright leaves, with Python's standard library alone.

    examples/read_results.py runs/first [TENSOR]    a run: run.json, epochs.csv, final.safetensors
    examples/read_results.py runs/quickstart        a sweep: results.sqlite

docs/formats describes the files.
"""

import contextlib
import csv
import json
import math
import sqlite3
import struct
import sys
from pathlib import Path

# struct has no letter for BF16: such tensors come back as bytes.
LETTERS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "?"}
LONGEST_HEADER = 100_000_000  # bytes
SWEEP_COLUMNS = ("point", "label", "state", "epochs", "train_loss", "test_loss", "test_accuracy")


def read_run(folder):
    """What run.json says, as a dict."""
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def read_numbers(file):
    """The rows of epochs.csv or steps.csv, as dicts; an empty field is None."""
    with open(file, encoding="utf-8", newline="") as lines:
        return [
            {column: float(field) if field else None for column, field in row.items()} for row in csv.DictReader(lines)
        ]


def read_header(file):
    """The tensors of a safetensors file by name, in the order of their data, and where the data begin."""
    with open(file, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > LONGEST_HEADER:
            raise ValueError(f"{file} is no safetensors file: a header of {length} bytes")
        header = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    in_order = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    return dict(in_order), 8 + length


def read_tensor(file, name):
    """One tensor: its shape, and its values in row-major order."""
    tensors, data = read_header(file)
    entry = tensors[name]
    begin, end = entry["data_offsets"]
    with open(file, "rb") as stream:
        stream.seek(data + begin)
        content = stream.read(end - begin)
    letter = LETTERS.get(entry["dtype"])
    count = math.prod(entry["shape"])
    return entry["shape"], struct.unpack(f"<{count}{letter}", content) if letter else content


def read_sweep(folder):
    """The rows of the view `results`, as dicts."""
    address = (folder / "results.sqlite").resolve().as_uri() + "?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM results")]


def shown(value):
    """For a terminal: texts of files may hold characters that it would act upon."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


def print_table(rows, columns):
    table = [list(columns)] + [[shown(row[column]) for column in columns] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table)]
    for cells in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths)))


def show_run(folder, wanted):
    run = read_run(folder)
    for key in ("name", "state", "pipewright", "seed", "digest", "error"):
        if key in run:
            print(f"{key:10}  {shown(run[key])}")
    rows = read_numbers(folder / "epochs.csv") if (folder / "epochs.csv").exists() else []
    if rows:
        for row in rows:
            row["epoch"] = int(row["epoch"])
        print_table(rows, [name for name in rows[0] if name == "epoch" or "loss" in name or name.startswith("test_")])
    weights = folder / "final.safetensors"
    if not weights.exists():
        return
    tensors, _ = read_header(weights)
    print(f"{len(tensors)} tensors, {sum(math.prod(entry['shape']) for entry in tensors.values())} values")
    name = wanted or next(iter(tensors))
    if name not in tensors:
        sys.exit(shown(f"there is no tensor {name}; known: {', '.join(tensors)}"))
    shape, values = read_tensor(weights, name)
    print(f"{shown(name)} {shape}: {', '.join(shown(value) for value in values[:4])}, ...")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    if (folder / "results.sqlite").exists():
        rows = read_sweep(folder)
        print_table(rows, [column for column in SWEEP_COLUMNS if rows and column in rows[0]])
    elif (folder / "run.json").exists():
        show_run(folder, sys.argv[2] if len(sys.argv) == 3 else None)
    else:
        sys.exit(f"{folder} has neither run.json nor results.sqlite")


if __name__ == "__main__":
    main()
