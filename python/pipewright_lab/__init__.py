# SPDX-License-Identifier: Apache-2.0
"""Drives the program `pipewright` from Python, and reads what it leaves.

    import pipewright_lab as pw

    run = pw.run({"model": {"name": "mlp"}, "pipeline": {"stages": 4}, "scheme": {"name": "spectrain"}}, out="runs/first")
    run.epochs                                  # a pandas DataFrame
    pw.sweep("experiments/quickstart.yaml").runs
    pw.load("runs/quickstart").probes
    pw.sweep("experiments/quickstart.yaml").table()
    pw.Schedule.of("first.yaml", minibatches=4)  # draws itself in a notebook

Everything is computed by the program; this package starts it, and reads the files that docs/formats describes.
"""

from .commands import check, claims, run, simulate, stability, sweep
from .importer import import_model
from .program import PipewrightError, Settings, find_program, version
from .results import Results, Table, load
from .schedule import Action, Schedule

__all__ = [
    "Action",
    "PipewrightError",
    "Results",
    "Schedule",
    "Settings",
    "Table",
    "check",
    "claims",
    "find_program",
    "import_model",
    "load",
    "run",
    "simulate",
    "stability",
    "sweep",
    "version",
]
