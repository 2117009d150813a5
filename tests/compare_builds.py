#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two builds of the program make the same of the project's experiments, byte for byte.

    tests/compare_builds.py OLD NEW FOLDER [EXPERIMENT…]

For a change that shall change nothing. OLD and NEW are programs; both sweep the quickstart and every experiment that
has a profile `ci`, or the experiments named, into FOLDER, which must not exist. Compared are the final weights,
steps.csv, the resolved experiment and all columns of epochs.csv and traffic.csv that hold no time, of every run; what
`check` and `schedule` print; drawings; and the tables, of the same runs, because some hold times. Prints what differs,
and ends with 1 if anything does. It takes twice as long as the experiments' own tests.
"""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

SOURCE_DIR = Path(__file__).resolve().parent.parent
OF_TIME = ("second", "wall", "time")


class Comparison:
    def __init__(self, old, new, folder):
        self.programs = {"old": Path(old).resolve(), "new": Path(new).resolve()}
        self.folder = Path(folder).resolve()
        self.folder.mkdir(parents=True)
        self.count = self.differ = 0

    def run(self, which, *words):
        """Exit code and standard output, with a home that holds no data."""
        done = subprocess.run(
            [self.programs[which], *map(str, words)],
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": str(self.folder / "home")},
            cwd=self.folder,
        )
        return done.returncode, done.stdout

    def same(self, what, old, new):
        self.count += 1
        if old != new:
            self.differ += 1
            print(f"differs: {what}", flush=True)

    def same_words(self, what, *words):
        self.same(what, *(self.run(which, *words) for which in self.programs))

    def same_drawing(self, what, *words):
        drawings = []
        for which in self.programs:
            path = self.folder / f"{which}.svg"
            self.run(which, *words, "--svg", path)
            drawings.append(contents(path))
            path.unlink(missing_ok=True)
        self.same(what, *drawings)

    def experiment(self, file):
        name = str(file.relative_to(SOURCE_DIR / "experiments")).replace("/", "-")
        options = [file, *([] if file.stem == "quickstart" else ["--profile", "ci"])]
        codes, outs = [], []
        for which in self.programs:
            outs.append(self.folder / f"{name}-{which}")
            codes.append(self.run(which, "sweep", *options, "--out", outs[-1], "--jobs", "2")[0])
        self.same(f"{name}: exit code", *codes)
        runs = [sorted(path.name for path in out.iterdir() if path.is_dir()) for out in outs]
        self.same(f"{name}: runs", *runs)
        for run in runs[0]:
            for part in ("final.safetensors", "steps.csv", "experiment.yaml"):
                self.same(f"{name}: {run}/{part}", *(contents(out / run / part) for out in outs))
            for part in ("epochs.csv", "traffic.csv"):
                self.same(f"{name}: {run}/{part}", *(without_times(out / run / part) for out in outs))
            resolved = outs[0] / run / "experiment.yaml"
            self.same_words(f"{name}: {run}, check", "check", resolved)
            self.same_words(f"{name}: {run}, schedule", "schedule", resolved, "--minibatches", 3)
            self.same_drawing(f"{name}: {run}, drawing", "schedule", resolved, "--minibatches", 3)
        for form in ("markdown", "csv", "latex"):
            self.same_words(f"{name}: table {form}", "table", *options, "--out", outs[0], "--format", form)
        print(f"{name}: {self.count} compared so far, {self.differ} differ", flush=True)


def contents(path):
    return path.read_bytes() if path.exists() else None


def without_times(path):
    if not path.exists():
        return None
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    kept = [i for i, name in enumerate(rows[0]) if not any(word in name for word in OF_TIME)]
    return [[row[i] for i in kept] for row in rows]


def experiments():
    """The quickstart, and all of the papers; those in deeper folders are extended by these."""
    papers = (SOURCE_DIR / "experiments").glob("*/*.yaml")
    return [SOURCE_DIR / "experiments/quickstart.yaml", *sorted(file for file in papers if file.parent.name != "hardware")]


def main(old, new, folder, *files):
    comparison = Comparison(old, new, folder)
    for file in [Path(file).resolve() for file in files] or experiments():
        comparison.experiment(file)
    print(f"{comparison.count} compared, {comparison.differ} differ")
    return 1 if comparison.differ else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
