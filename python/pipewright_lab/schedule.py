# SPDX-License-Identifier: Apache-2.0
"""A schedule as the program makes it: to read, to draw, and to step through."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .program import Experiment, Settings, call, experiment_file, options

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"forward": "#4c78a8", "backward": "#59a14f", "update": "#333333"}
OTHER_COLOR = "#b07aa1"


@dataclass(frozen=True)
class Action:
    """What a worker does: a forward, backward, update, … of a stage for a micro-batch of a mini-batch.

    `version` and `ahead` say which weights it reads: those after so many updates, predicted so many steps ahead.
    `start` and `slots` are its place in the drawing, where a forward takes one slot and a backward two.
    """

    worker: int
    index: int
    kind: str
    stage: int
    replica: int
    minibatch: int
    microbatch: int | None
    loss: int | None
    version: int | None
    ahead: int | None
    start: int
    slots: int

    @property
    def end(self) -> int:
        return self.start + self.slots


def _whole(text: str) -> int | None:
    return int(text) if text else None


def _action(row: dict[str, str]) -> Action:
    return Action(
        worker=int(row["worker"]),
        index=int(row["index"]),
        kind=row["kind"],
        stage=int(row["stage"]),
        replica=int(row["replica"]),
        minibatch=int(row["minibatch"]),
        microbatch=_whole(row["microbatch"]),
        loss=_whole(row["loss"]),
        version=_whole(row["version"]),
        ahead=_whole(row["ahead"]),
        start=int(row["start"]),
        slots=int(row["slots"]),
    )


class Schedule:
    """The actions of every worker, in their order."""

    def __init__(self, actions: Sequence[Action], svg: str | None = None) -> None:
        self.actions = list(actions)
        self._svg = svg

    @staticmethod
    def of(
        experiment: Experiment,
        *,
        minibatches: int = 8,
        settings: Settings | None = None,
        profile: str | None = None,
        plugins: Sequence[str] = (),
    ) -> Schedule:
        """The schedule of an experiment, proved by the program. Raises PipewrightError if it cannot run."""
        with tempfile.TemporaryDirectory() as folder, experiment_file(experiment) as file:
            table, picture = Path(folder) / "schedule.csv", Path(folder) / "schedule.svg"
            call(
                ["schedule", file, "--minibatches", str(minibatches), "--csv", str(table), "--svg", str(picture)]
                + options(settings, profile, plugins)
            )
            return Schedule.read(table, picture.read_text(encoding="utf-8"))

    @staticmethod
    def read(file: str | os.PathLike[str], svg: str | None = None) -> Schedule:
        """Reads what `pipewright schedule --csv` wrote. Raises ValueError if the file is something else."""
        with open(file, newline="", encoding="utf-8") as opened:
            rows = csv.DictReader(opened)
            missing = set(Action.__dataclass_fields__) - set(rows.fieldnames or ())
            if missing:
                raise ValueError(f"{file} is no schedule: it has no column {', '.join(sorted(missing))}")
            return Schedule([_action(row) for row in rows], svg)

    @property
    def workers(self) -> list[list[Action]]:
        """[worker] → its actions in order."""
        count = 1 + max((action.worker for action in self.actions), default=-1)
        return [[action for action in self.actions if action.worker == worker] for worker in range(count)]

    @property
    def makespan(self) -> int:
        """Slots from the first action to the end of the last."""
        return max((action.end for action in self.actions), default=0)

    def at(self, slot: int) -> list[Action | None]:
        """What each worker does in a slot; None where it is idle. Updates take no slot."""
        return [
            next((action for action in actions if action.start <= slot < action.end), None) for actions in self.workers
        ]

    def steps(self) -> Iterator[list[Action | None]]:
        """What all workers do, slot by slot."""
        for slot in range(self.makespan):
            yield self.at(slot)

    def _repr_svg_(self) -> str | None:
        return self._svg

    def draw(self, axes: Axes | None = None, *, until: int | None = None) -> Axes:
        """Draws the schedule with matplotlib: a row per worker, an action per bar with its mini-batch.

        `until` leaves out what has not begun by the end of that slot, so that pictures for 0, 1, 2, … show the pipeline at work.
        """
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(figsize=(min(24.0, 2 + 0.35 * self.makespan), 1 + 0.45 * len(self.workers)))
        for action in self.actions:
            if action.slots == 0 or (until is not None and action.start > until):
                continue
            axes.barh(
                action.worker,
                action.slots,
                left=action.start,
                height=0.8,
                color=COLORS.get(action.kind, OTHER_COLOR),
                edgecolor="white",
            )
            axes.text(
                action.start + action.slots / 2, action.worker, str(action.minibatch), ha="center", va="center", color="white"
            )
        axes.set_yticks(range(len(self.workers)), [f"worker {worker}" for worker in range(len(self.workers))])
        axes.set_xlim(0, self.makespan)
        axes.set_ylim(len(self.workers) - 0.5, -0.5)
        axes.set_xlabel("slot")
        return axes
