# SPDX-License-Identifier: Apache-2.0
"""Formulas of the pages about schemes: rows of their tables, evaluated exactly where no sine is in them.

A formula is written as on paper: ⌊max(0, f − D) / M⌋, 2·sin(π / (4·D + 2)). docs/manual/schemes/README.md has the
symbols.
"""

import math
import re
from fractions import Fraction

WRITTEN = str.maketrans({"⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")", "−": "-", "·": "*"})
TOKEN = re.compile(r"\s*(?:([^\W\d]\w*)|(\d+)|([-+*/(),]))")


def away_from_zero(value):
    """To the nearest whole number, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value))


FUNCTIONS = {"floor": math.floor, "ceil": math.ceil, "round": away_from_zero, "min": min, "max": max,
             "sin": lambda x: math.sin(float(x)), "π": math.pi}


class WrongFormula(Exception):
    """A formula that is none."""


def evaluate(formula, symbols):
    """The value of a formula; `symbols` are whole numbers by their names."""
    known = FUNCTIONS | {name: Fraction(value) for name, value in symbols.items()}
    words, at, text = [], 0, formula.translate(WRITTEN).strip()
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token or (token[1] and token[1] not in known):
            raise WrongFormula(f"{formula}: {text[at:]!r} is no part of a formula with {', '.join(sorted(symbols))}")
        words.append(f"Fraction({token[2]})" if token[2] else token[0])
        at = token.end()
    try:
        return eval(" ".join(words), {"__builtins__": {}, "Fraction": Fraction}, known)
    except SyntaxError as error:
        raise WrongFormula(f"{formula}: {error.msg}") from error


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def section(page, heading):
    """The text below a heading of a page."""
    found = re.search(rf"(?ms)^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page)
    return found[1] if found else ""


def rows(page, heading):
    """(options, a cell by each other column's name) of each row of the table below a heading that has a column "with"."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("|")]
    if not lines or cells(lines[0])[0] != "with":
        return []
    columns = cells(lines[0])
    return [(options_of(cells(line)[0]), list(zip(columns[1:], cells(line)[1:]))) for line in lines[2:]]


def options_of(cell):
    """"" for the defaults, else what stands in backticks."""
    return "" if cell == "the defaults" else cell.strip("`")


def formula_of(cell):
    """What stands in backticks, or None."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    return found[1] if found else None
