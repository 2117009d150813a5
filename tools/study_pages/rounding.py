# SPDX-License-Identifier: Apache-2.0
"""How far results move if only rounding changes (docs/study/protocol.md): runs that were made twice, on two kinds of processor.

Of the rows in `X.csv`, those in `rounding-X.csv` beside it are the same runs, made again with other kernels.
"""

import csv
import statistics

from .tables import markdown, number, unit


def made_again(task):
    """(a row, the row of the same run made again), of the runs that were made twice."""
    file = task.root / task.rows_file
    again = file.with_name(f"rounding-{file.name}")
    if not again.exists():
        return []
    first = {row["digest"]: row for row in task.rows}
    with open(again, newline="", encoding="utf-8") as rows:
        return [(first[row["digest"]], row) for row in csv.DictReader(rows) if row["digest"] in first]


def value(task, row):
    return float(row[f"last.{task.metric}"]) if row["state"] == "done" else task.chance


def sets(rows):
    """The kernels of the rows: "AVX512"."""
    return " and ".join(dict.fromkeys(row["instruction_set"] for row in rows))


def line(task):
    pairs = made_again(task)
    if not pairs:
        return [task.id, task.title, "not made again", "", "", "", ""]
    changes = [abs(value(task, again) - value(task, first)) for first, again in pairs]
    kernels = f"{sets(first for first, _ in pairs)}, then {sets(again for _, again in pairs)}"
    largest = pairs[changes.index(max(changes))][0]["label"]
    shown = [number(each, task.metric) for each in (statistics.median(changes), max(changes))]
    return [task.id, task.title, kernels, str(len(pairs)), shown[0], f"{shown[1]} {unit(task.metric)}", largest]


def table(tasks):
    """A line for each task."""
    header = ["task", "network and data", "kernels", "runs made twice", "median change", "largest change", "in a run of"]
    return markdown(header, [line(task) for task in tasks], left=3)
