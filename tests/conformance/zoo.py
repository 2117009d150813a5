#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imports the models of public zoos, with random weights, and holds their gradients against PyTorch's in float64.

    tests/conformance/run zoo.py --folder DIR [--only WORD …] [--seconds 300] [--csv FILE]

It is run by hand: it takes about two hours. torchvision is that of the conformance environment; timm and transformers come
from PyPI into ~/.cache/pipewright. Each model is imported, `pipewright check`ed and trained for one step, which moves
every weight by a part of its gradient, in a child process with a limit of seconds and memory. zoo.csv is the table of the
last run. Models are small forms of their families, without anything that draws; images have 64 places a side or as many as
the model wants, and a batch has two samples.
"""

import argparse
import csv
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

VERSIONS = ("timm==1.0.31", "transformers==5.24.0")
PLACE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pipewright" / "zoo"
HERE = Path(__file__).resolve().parent


def set_up():
    """Installs what the environment lacks. timm alone would ask for a torch of its own."""
    if not (PLACE / "timm").is_dir():
        for package, *more in ((VERSIONS[1],), (VERSIONS[0], "--no-deps")):
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", PLACE, package, *more], check=True)
    sys.path.insert(0, str(PLACE))


set_up()

import timm  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402
import zoo_models  # noqa: E402
from importing.refusal import Refusal, in_a_line  # noqa: E402
from zoo_training import Trial  # noqa: E402

COLUMNS = ("zoo", "model", "parameters", "operators", "result", "difference", "allowed")
MEMORY = 12 << 30


def row_of(zoo, name, make, folder):
    """What becomes of one model."""
    try:
        trial = Trial(folder)
        parameters, operators, far, limit = trial.compared(make())
    except Refusal as refusal:
        return (zoo, name, "", "", f"import: {refusal}", "", "")
    except AssertionError as refused:
        return (zoo, name, "", "", str(refused), "", "")
    except Exception as error:
        if os.environ.get("ZOO_TRACEBACK"):
            traceback.print_exc()
        return (zoo, name, "", "", f"not made: {in_a_line(error)}", "", "")
    return (zoo, name, parameters, operators, "trained" if far <= limit else f"other gradients; {trial.remark}", f"{far:.1e}", f"{limit:.1e}")


def in_child(zoo, name, make, seconds, folder):
    """row_of() in a process of its own, which may use up its seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY + (16 << 30), MEMORY + (16 << 30)))
        with tempfile.TemporaryDirectory(dir=folder) as place:
            row = row_of(zoo, name, make, Path(place))
        with os.fdopen(writing, "w", newline="") as pipe:
            csv.writer(pipe).writerow(row)
        os._exit(0)
    os.close(writing)

    def end(*_):
        os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    with os.fdopen(reading, newline="") as pipe:
        rows = list(csv.reader(pipe))
    os.waitpid(child, 0)
    signal.alarm(0)
    return rows[0] if rows else [zoo, name, "", "", f"took more than {seconds} s or {MEMORY >> 30} GiB", "", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where files are made, 2 GB")
    parser.add_argument("--only", nargs="*", help="models whose names begin so")
    parser.add_argument("--seconds", type=int, default=300, help="limit for one model")
    parser.add_argument("--csv", type=Path, default=HERE / "zoo.csv")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    done = {}
    if given.csv.is_file():
        with open(given.csv, newline="") as file:
            done = {tuple(row[:2]): row for row in csv.reader(line for line in file if not line.startswith("#"))}
    for zoo, name, make in zoo_models.all_models():
        if given.only is not None and not any(f"{zoo}/{name}".startswith(word) for word in given.only):
            continue
        began = time.monotonic()
        done[zoo, name] = row = in_child(zoo, name, make, given.seconds, given.folder)
        print(f"{time.monotonic() - began:4.0f} s ", ",".join(map(str, row)), flush=True)
        write(given.csv, done)


def write(path, done):
    versions = ", ".join(f"{each.__name__} {each.__version__.split('+')[0]}" for each in (torch, torchvision, timm, transformers))
    with open(path, "w", newline="") as file:
        file.write(f"# {versions}, written by tests/conformance/zoo.py\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        done.pop(COLUMNS[:2], None)
        table.writerows(done[key] for key in sorted(done))


if __name__ == "__main__":
    main()
