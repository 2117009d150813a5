# SPDX-License-Identifier: Apache-2.0
"""Runs a test of ctest, and writes down its processor seconds and what it skipped, for tiers.py.

    tests/entry.py NAME -- COMMAND…

Of an executable of GoogleTest, the cases of the default tier run or, where $PIPEWRIGHT_TIER is `quick`, of that; and where
the name ends in `_slow`, the others. If all are skipped it exits with 77, as skips.py does for Python.
"""

import csv
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import skips
import tiers


def run(command, environment):
    """Runs a command and passes on what it prints; its exit code, and its lines of what was skipped."""
    skipped = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            if line.startswith("SKIPPED: "):
                skipped.append(line)
            print(line, end="", flush=True)
    return process.returncode, skipped


def run_suite(name, command, executable, cases_file):
    """Runs an executable of GoogleTest, the cases of a tier; also gives the seconds of each case."""
    environment = {**os.environ, "PIPEWRIGHT_CASE_TIMES": str(cases_file)}
    tier = tiers.QUICK if os.environ.get("PIPEWRIGHT_TIER") == tiers.QUICK.name else tiers.DEFAULT
    if chosen := tiers.gtest_filter(tiers.table(), executable, tier, slow=tiers.without_shard(name).endswith("_slow")):
        environment["GTEST_FILTER"] = chosen
    code, skipped = run(command, environment)
    cases = tiers.read_times(cases_file) if cases_file.exists() else {}
    cases_file.unlink(missing_ok=True)
    if code == 0 and cases and set(cases) <= {skips.read(line)[0] for line in skipped}:
        code = skips.SKIPPED
    return code, skipped, cases


def main(name, *command):
    tiers.MEASURED.mkdir(parents=True, exist_ok=True)
    file = tiers.MEASURED / f"{re.sub('[^A-Za-z0-9_.-]', '_', name)}.csv"
    file.unlink(missing_ok=True)
    executable = Path(command[0]).name
    rows = []
    if executable.endswith("_tests"):
        code, skipped, cases = run_suite(name, command, executable, file.with_suffix(".cases"))
        rows = [(f"{executable}/{case}", seconds) for case, seconds in cases.items()]
    else:
        code, skipped = run(command, os.environ)
    file.with_suffix(".skips").write_text("".join(skipped), encoding="utf-8")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows.append((tiers.without_shard(name), spent.ru_utime + spent.ru_stime))
    with open(file, "w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows((each, f"{seconds:.2f}") for each, seconds in rows)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if "--" not in sys.argv:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *sys.argv[sys.argv.index("--") + 1 :]))
