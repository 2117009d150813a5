# SPDX-License-Identifier: Apache-2.0
"""Drives the program `pipewright` from Python, and reads what it leaves.

    import pipewright as pw

    run = pw.run({"model": {"name": "mlp"}, "pipeline": {"stages": 4}, "scheme": {"name": "spectrain"}}, out="runs/first")
    run.epochs                                  # a pandas DataFrame
    pw.sweep("experiments/quickstart.yaml").runs
    pw.load("runs/quickstart").probes
    pw.Schedule.of("first.yaml", minibatches=4)  # draws itself in a notebook

Everything is computed by the program; this package starts it, and reads the files that docs/formats describes.
"""

from .importer import import_model
from .program import PipewrightError, Settings, check, find_program, run, sweep, version
from .results import Results, load
from .schedule import Action, Schedule

__all__ = [
    "Action",
    "PipewrightError",
    "Results",
    "Schedule",
    "Settings",
    "check",
    "find_program",
    "import_model",
    "load",
    "run",
    "sweep",
    "version",
]
