# SPDX-License-Identifier: Apache-2.0
"""Accuracy against time on a machine: what was trained in small beside what the whole recipe is modelled to take."""

import csv
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .markers import Wrong
from .task import Cell, pipewright
from .tables import accuracy, in_stages, markdown, signed
from .verdicts import NOT_RUN

MARGIN = 0.005  # the loss of accuracy that the protocol calls none
SAME_PACE = 1.01  # factor between hours that count as equal, as in the plans of `simulate --sweep`
HOUR = 3600
GIB = 2**30


@dataclass(frozen=True)
class Point:
    """A scheme in a number of stages on one machine."""

    cell: Cell
    stages: str
    hours: float = None  # of the whole recipe; None where the machine refuses it
    gib: float = None  # of the worker that holds most
    reason: str = ""

    @property
    def known(self):
        """Whether the machine takes it and all its runs are there."""
        return self.hours is not None and len(self.cell.values) == self.cell.planned

    @property
    def name(self):
        return f"{self.cell.row} {in_stages(self.stages)}"


@cache
def simulated(root, file, hardware):
    """The rows of `simulate --sweep`, of one seed, for they all take as long."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "points.csv"
        pipewright(root, "simulate", file, "--sweep", "--set", "sweep.grid.train.seed=[1]", "--hardware", hardware,
                   "--csv", table)
        with open(table, newline="", encoding="utf-8") as points:
            return list(csv.DictReader(points))


def points_of(task, hardware):
    """The points of the whole recipe that the study has, too, on the machine; the fastest first."""
    rows = simulated(task.root, task.file, hardware)
    points = [point(cell, task, row) for row in rows if (cell := cell_of(task, row))]
    return sorted(points, key=lambda point: (point.hours is None, point.hours, point.name))


def point(cell, task, row):
    stages = row.get("pipeline.stages") or row["workers"]
    if row["state"] != "fits":
        return Point(cell, stages, reason=row["reason"] or row["state"])
    held = max(int(bytes_) for bytes_ in row["peak_bytes_of_workers"].split())
    hours = task.whole_samples / float(row["samples_per_second"]) / HOUR
    return Point(cell, stages, float(f"{hours:.6g}"), held / GIB)  # rounding makes schemes equal that are equally fast


def cell_of(task, row):
    """The cell of the runs that the simulated point is of; None if the study leaves the point out."""
    found = [cell for cell in task.cells if cell.row == row["label"]
             and cell.stages in (None, int(row.get("pipeline.stages") or 0))]
    if len(found) > 1:
        raise Wrong(f"task {task.id}: {len(found)} cells of the table are of the simulated point '{row['label']}', "
                    f"stages {row.get('pipeline.stages', 'fixed')}; expected one")
    return found[0] if found else None


def on_front(point, points):
    """Whether no other point is at least as good in accuracy and in time, and better in one."""
    return point.known and not any(beats(other, point) for other in points if other.known)


def beats(one, other):
    faster, slower = one.hours < other.hours / SAME_PACE, one.hours > other.hours * SAME_PACE
    better, worse = one.cell.mean > other.cell.mean, one.cell.mean < other.cell.mean
    return (faster or better) and not (slower or worse)


def front(task, hardware):
    """A row for each point; those on the front are marked."""
    points = points_of(task, hardware)
    rows = [[point.cell.row, point.stages, hours(point), f"{point.gib:.2f}" if point.gib else "", accuracy(point.cell),
             "●" if on_front(point, points) else ""] for point in points]
    return markdown(["", "stages", "modelled hours", "GiB", "accuracy, %", "front"], rows)


def hours(point):
    return "more devices needed" if "devices" in point.reason else point.reason or f"{point.hours:#.3g}"


def advice(tasks, hardware):
    """A sentence for each task that has a whole recipe: which scheme to take on that machine."""
    return "\n".join(f"- **{task.title}**: {sentence(task, points_of(task, hardware))}"
                     for task in tasks if task.whole_samples)


def sentence(task, points):
    known = [point for point in points if point.known]
    references = [point for point in known if point.cell.row == task.reference]
    if not references or len(known) < 2:
        return NOT_RUN
    reference = references[0]
    best = fastest_of([point for point in known if reference.cell.mean - point.cell.mean <= MARGIN])
    text = f"take {told(best, reference)}"
    if best is reference:
        text = f"stay with {told(best, reference)}; whatever is faster loses more than {100 * MARGIN:g} points"
    if (fastest := fastest_of(known)) is not best:
        text += f". The fastest, {told(fastest, reference)}"
    return f"{text}."


def fastest_of(points):
    """The most accurate of those that are as fast as the fastest."""
    as_fast = [point for point in points if point.hours <= points[0].hours * SAME_PACE]
    return max(as_fast, key=lambda point: point.cell.mean)


def told(point, reference):
    text = f"{point.name}: {duration(point.hours)}"
    if point is not reference:
        difference = signed(point.cell.mean - reference.cell.mean)
        text += f" where {reference.name} takes {duration(reference.hours)}, and {difference} points from it"
    return text


def duration(hours):
    """In the largest unit of which there is one."""
    for unit, count in (("hours", hours), ("minutes", 60 * hours)):
        if count >= 1:
            return f"{count:#.3g} {unit}"
    return f"{HOUR * hours:#.3g} seconds"
