# SPDX-License-Identifier: Apache-2.0
"""What the program reads of a graph (models/graph), so that an import refuses what the program would refuse."""

import functools
import re
from pathlib import Path

import torch

from importing.refusal import Refusal, type_name

HERE = Path(__file__).resolve().parent
TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)
MEMORY_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last)
DROPS = ("aten::dropout", "aten::dropout_", "aten::feature_dropout")
ATTENTION = "aten::scaled_dot_product_attention"


@functools.cache
def operators():
    """Names such as "aten::conv2d", from the file that the program is compiled with."""
    for place in (HERE / "operators.inc", HERE.parents[1] / "models" / "graph" / "operators.inc"):
        if place.is_file():
            lines = [line for line in place.read_text(encoding="utf-8").splitlines() if not line.startswith("//")]
            return frozenset(f"aten::{name}" for name in re.findall(r'"(\w+)"', "\n".join(lines)))
    raise Refusal(f"there is no operators.inc in {HERE}; install Pipewright again")


def check_type(dtype, where):
    if dtype not in TYPES:
        raise Refusal(f"{where} is of the type {type_name(dtype)}; expected one of {', '.join(map(type_name, TYPES))}")


def not_computed(where):
    return Refusal(f"{where} is not among the operators that the program computes (docs/formats/graph.md)")


def check_node(written, where):
    """Refuses an operator of graph.json that the program would refuse."""
    name, given = written["operator"], written["arguments"]
    if name not in operators():
        raise not_computed(where)
    drops = given.get("p", 0) if name in DROPS else given.get("dropout_p", 0) if name == ATTENTION else given.get("dropout", 0)
    if "batch_sizes" in given:
        raise Refusal(f"{where} reads packed sequences; expected sequences of one length")
    if not drops:
        return
    sizes = [size for size in written["outputs"][0]["shape"] if size[0]]
    if len(sizes) > 1 or any(factor < 0 or constant for factor, constant in sizes):
        raise Refusal(f"{where} drops elements of a tensor of which no dimension is a multiple of the batch alone")
