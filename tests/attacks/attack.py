# SPDX-License-Identifier: Apache-2.0
"""Runs the program on one hostile input after the other, and judges how each of them was refused.

A case says what it expects: the exit code, where the fault lies and words of the message. Besides,
every refusal must be short, keep its reasons to itself no more than needed, and cost no more than the
case's limits of processor time and memory, which are the program's own as the kernel counts them:
wall time says nothing on a busy machine. Nothing here imports anything but the standard library.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

BINARY = os.environ["PIPEWRIGHT_BINARY"]
SOURCE_DIR = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"])
DATA_DIR = SOURCE_DIR.parent / "shared" / "data"  # real data sets, where there are some

FINE, EXPERIMENT, DATA, SCHEDULE, WORKER = 0, 2, 3, 4, 5
MIB = 1 << 20
HANGS_AFTER = 100  # seconds by the clock, after which a case is taken for hanging
MOST_LINES, MOST_BYTES = 103, 20_000  # of stderr; problems are told up to the hundredth
TERMINAL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
# What only our own defects, or a runtime's last words, say.
INTERNAL = re.compile(
    rb"bug in Pipewright|terminate called|std::|c10::|at::|Traceback|Segmentation|Aborted|"
    rb"core/[a-z]+/|\.cpp:|basic_string|vector::|bad_alloc|Exception|what\(\)"
)


@dataclass
class Case:
    """One input, the command that reads it, and how it must be refused."""

    name: str
    files: dict = field(default_factory=dict)  # name → text, bytes or a function that makes the path
    command: tuple = ("check", "x.yaml")
    code: int = EXPERIMENT
    place: str = ""  # what a line of stderr begins with
    says: tuple = ()  # words of stderr, all of them
    never: tuple = ()  # words neither of stderr nor of stdout
    seconds: float = 2  # of the processor's time
    memory: int = 256 * MIB  # at most, resident
    environment: dict = field(default_factory=dict)


@dataclass
class Outcome:
    case: Case
    faults: list
    seconds: float = 0
    memory: int = 0
    stderr: bytes = b""


# --- files that are no plain text -------------------------------------------------------------


def fifo(path):
    os.mkfifo(path)


def listening(path):
    """A Unix socket; the name stays when it is closed."""
    name = f"/tmp/attack-{os.getpid()}-{threading.get_ident()}"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(name)
    shutil.move(name, path)


def link(target):
    return lambda path: path.symlink_to(target)


def folder(path):
    path.mkdir()


def hole(size, begin=b""):
    """A sparse file: it has that size and takes no room on the disk."""

    def make(path):
        with open(path, "wb") as file:
            file.write(begin)
            file.truncate(size)

    return make


def put(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)


# --- running ----------------------------------------------------------------------------------


PLACE = threading.local()  # of the thread's launcher
LAUNCHERS = []


def launcher():
    if not hasattr(PLACE, "launcher"):
        PLACE.launcher = subprocess.Popen(
            [sys.executable, "-B", "-S", Path(__file__).with_name("launcher.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        LAUNCHERS.append(PLACE.launcher)
    return PLACE.launcher


def end_launchers():
    """Only of children that were waited for does the kernel add the processor time to ours, which decides our tier."""
    for each in LAUNCHERS:
        each.stdin.close()
        each.wait()


def measured(command, root, environment):
    """Exit code (None: it hung), stdout, stderr, seconds of processor time, peak bytes of memory."""
    with tempfile.TemporaryDirectory(prefix="pipewright-attack-said-") as said:
        order = {
            "command": [BINARY, *command], "folder": str(root), "hangs_after": HANGS_AFTER,
            "environment": {"OMP_NUM_THREADS": "1"} | environment, "out": f"{said}/out", "err": f"{said}/err",
        }
        with_launcher = launcher()
        print(json.dumps(order), file=with_launcher.stdin, flush=True)
        told = json.loads(with_launcher.stdout.readline())
        out, err = Path(order["out"]).read_bytes(), Path(order["err"]).read_bytes()
        return told["code"], out, err, told["seconds"], told["memory"]


def faults_of(case, code, out, err, seconds, memory):
    faults = []
    if code is None:
        return [f"hangs: no end after {HANGS_AFTER} s"]
    if code != case.code:
        faults.append(f"exit code {code}, expected {case.code}")
    if seconds > case.seconds:
        faults.append(f"took {seconds:.2f} s of processor time, at most {case.seconds}")
    if memory > case.memory:
        faults.append(f"took {memory // MIB} MiB, at most {case.memory // MIB}")
    if case.code == FINE:
        return faults
    lines = err.decode(errors="replace").splitlines()
    if not lines:
        faults.append("says nothing")
    if len(lines) > MOST_LINES or len(err) > MOST_BYTES:
        faults.append(f"says too much: {len(lines)} lines, {len(err)} bytes")
    if case.place and not any(line.startswith(case.place) for line in lines):
        faults.append(f"no line begins with {case.place!r}")
    text = err.decode(errors="replace")
    for words in case.says:
        if words not in text:
            faults.append(f"does not say {words!r}")
    for words in case.never:
        if words.encode() in out + err:
            faults.append(f"shows {words!r}")
    if found := INTERNAL.search(err):
        faults.append(f"speaks of its inside: {found.group()!r}")
    if found := TERMINAL.search(err):
        faults.append(f"prints the control character {found.group()!r}")
    if not err.isascii():
        try:
            err.decode()
        except UnicodeDecodeError:
            faults.append("prints bytes that are not UTF-8")
    return faults


def judged(case):
    root = Path(tempfile.mkdtemp(prefix="pipewright-attack-"))
    try:
        put(root, case.files)
        command = [str(part).replace("{root}", str(root)) for part in case.command]
        result = measured(command, root, case.environment)
        return Outcome(case, faults_of(case, *result), result[3], result[4], result[2])
    except Exception as error:  # ours: a case that cannot be made must not pass
        return Outcome(case, [f"the case cannot be made: {error!r}"])
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", root], stderr=subprocess.DEVNULL)
        shutil.rmtree(root, ignore_errors=True)


def refuse_if_ill():
    """A program that refuses everything would pass, too: a healthy file must be fine."""
    healthy = Case("healthy", {"x.yaml": "model: {name: mlp}\n"}, code=FINE, seconds=60)
    outcome = judged(healthy)
    if outcome.faults:
        sys.exit(f"a healthy experiment is refused: {outcome.faults} {outcome.stderr.decode()}")
    print(f"healthy: {outcome.seconds:.2f} s of processor time, {outcome.memory // MIB} MiB")


def main(cases, expected, title):
    """Runs the cases (or those whose names hold --only) and exits with 1 if any is not refused as it
    must be, or if there are fewer than expected."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--part", default="1/1", help="2/3: the second of every three cases")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print what every case was told")
    given = parser.parse_args()
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        sys.exit(f"cases of the same name: {sorted(repeated)[:5]}")
    part, parts = map(int, given.part.split("/"))
    chosen = [case for case in cases[part - 1 :: parts] if given.only in case.name]
    if given.list:
        print("\n".join(case.name for case in chosen))
        return
    refuse_if_ill()
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(judged, chosen))
    end_launchers()
    for outcome in outcomes:
        if outcome.faults or given.verbose:
            print(f"{'FAILED' if outcome.faults else 'ok'}  {outcome.case.name}")
            for fault in outcome.faults:
                print(f"        {fault}")
            shown = outcome.stderr.decode(errors="replace").splitlines()[:3]
            for line in shown:
                print(f"        | {line[:240]!r}")
    failed = sum(bool(outcome.faults) for outcome in outcomes)
    if outcomes:
        slowest = max(outcomes, key=lambda outcome: outcome.seconds)
        largest = max(outcomes, key=lambda outcome: outcome.memory)
        print(f"slowest: {slowest.seconds:.2f} s of processor time, {slowest.case.name}")
        print(f"largest: {largest.memory // MIB} MiB, {largest.case.name}")
    print(f"{title}: {len(outcomes) - failed} of {len(outcomes)} in {time.monotonic() - began:.0f} s")
    if len(cases) < expected:
        sys.exit(f"there must be {expected} cases")
    sys.exit(1 if failed or not outcomes else 0)
