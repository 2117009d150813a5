# SPDX-License-Identifier: Apache-2.0
"""What the program computes of a graph (models/graph), so that an import refuses what the program would refuse."""

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
def listed(file, folder):
    """What a list of the program says: for each word ("REFUSED") the texts behind it, line by line."""
    for place in (HERE / file, HERE.parents[1] / folder / file):
        if place.is_file():
            lines = [line for line in place.read_text(encoding="utf-8").splitlines() if not line.startswith("//")]
            found = {}
            for word, given in re.findall(r"\b([A-Z]+)\(((?:[^()\"]|\"[^\"]*\")*)\)", "\n".join(lines)):
                found.setdefault(word, []).append([text or name for text, name in re.findall(r'"([^"]*)"|(\w+)', given)])
            return found
    raise Refusal(f"there is no {file} in {HERE}; install Pipewright again")


def filled():
    """(function, operators such as "where.self") that the program gives the meta device."""
    return [(given[0], given[1:]) for given in listed("filled_kernels.inc", "core/nn/meta")["FILLED"]]


def exception(word, schema):
    """What operators.inc says about an operator under that word, or None."""
    name = schema.name.partition("::")[2]
    for each, *reason in listed("operators.inc", "models/graph")[word]:
        base, dot, overload = each.partition(".")
        if (name.startswith(each[:-1]) if each.endswith("*") else base == name and (not dot or overload == schema.overload_name)):
            return reason
    return None


def kinds(type_):
    """The type within optionals and lists."""
    return re.sub(r"(Optional|List)\[|\]", "", str(type_))


def is_known(argument):
    kind = kinds(argument.type)
    texts = [name for (name,) in listed("operators.inc", "models/graph")["TEXT"]]
    return kind in ("Tensor", "number", "float", "int", "bool") or argument.name == "device" or (kind == "str" and argument.name in texts)


def without_writing(target):
    """add.Tensor of add_.Tensor, or None."""
    name, overload = target._schema.name.partition("::")[2], target._schema.overload_name
    return getattr(getattr(torch.ops.aten, name[:-1], None), overload or "default", None) if name.endswith("_") else None


def reason_against(target):
    """Why a graph may not call the operator, or "" if it may: reason_against() of models/graph/graph_operators.cpp."""
    schema = target._schema
    space, _, name = schema.name.partition("::")
    writes = [each for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    if space != "aten":
        return "is no operator of ATen"
    if name.startswith("_"):
        return "is a part of operators that check shapes for it"
    if "backward" in name:
        return "is a part of a backward"
    if refused := exception("REFUSED", schema):
        return refused[0]
    if unknown := [each.name for each in schema.arguments if each.name != "generator" and not is_known(each)]:
        return f"has an argument '{unknown[0]}'"
    if not schema.returns or any(kinds(each.type) != "Tensor" for each in schema.returns):
        return "returns no tensors"
    if writes and (len(writes) > 1 or not schema.arguments[0].alias_info or not without_writing(target)):
        return "writes into what it is given"
    if exception("ADMITTED", schema):
        return ""
    if torch.Tag.nondeterministic_seeded in target.tags or any(each.name == "generator" for each in schema.arguments):
        return "draws random numbers"
    if torch.Tag.inplace_view in target.tags:
        return "changes the sizes of a tensor that others read"
    if torch.Tag.data_dependent_output in target.tags or torch.Tag.dynamic_output_shape in target.tags:
        return "makes results whose sizes depend on data"
    return ""


def check_type(dtype, where):
    if dtype not in TYPES:
        raise Refusal(f"{where} is of the type {type_name(dtype)}; expected one of {', '.join(map(type_name, TYPES))}")


def refused(where, reason):
    return Refusal(f"{where} {reason} (docs/formats/graph.md)")


def check_division(written, where):
    """Refuses a division of integers that the program refuses: check_division() of models/graph/graph_meta.cpp."""
    given = written["arguments"]
    if all("float" in each["type"] for each in written["outputs"]):
        return
    by = given.get("other")
    known = type(by) is int and by != -1 and abs(by) < 1 << 31
    if given.get("rounding_mode") == "trunc" and not known:
        raise Refusal(f"{where} divides integers with rounding_mode 'trunc' by {by if type(by) is int else 'a tensor'}; "
                      "expected rounding_mode 'floor', or a number of 31 bits that is not -1")
    if type(by := given.get("divisor_override")) is int and by < 1:
        raise Refusal(f"{where} divides integers by divisor_override {by}; expected at least 1")


def check_node(written, where):
    """Refuses a node of graph.json that drops or divides in a way that the program refuses."""
    check_division(written, where)
    name, given = written["operator"], written["arguments"]
    drops = given.get("p", 0) if name in DROPS else given.get("dropout_p", 0) if name == ATTENTION else given.get("dropout", 0)
    if "batch_sizes" in given:
        raise Refusal(f"{where} reads packed sequences; expected sequences of one length")
    if not drops:
        return
    sizes = [size for size in written["outputs"][0]["shape"] if size[0]]
    if len(sizes) > 1 or any(factor < 0 or constant for factor, constant in sizes):
        raise Refusal(f"{where} drops elements of a tensor of which no dimension is a multiple of the batch alone")
