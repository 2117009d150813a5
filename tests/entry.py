# SPDX-License-Identifier: Apache-2.0
"""Runs a test of ctest, writes down its processor seconds, and tells ctest of tests in C++ that were skipped.

    tests/entry.py NAME -- COMMAND…

Of an executable of GoogleTest, the cases of $PIPEWRIGHT_TIER run; without it all of them. A skipped case makes it
exit with 77, as ../tests/skips.py does for Python.
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


def run_suite(command, executable, cases_file):
    """Runs an executable of GoogleTest and passes on what it prints."""
    environment = {**os.environ, "PIPEWRIGHT_CASE_TIMES": str(cases_file)}
    tier = next((each for each in tiers.TIERS if each.name == os.environ.get("PIPEWRIGHT_TIER")), tiers.ALL)
    if chosen := tiers.gtest_filter(tiers.table(), executable, tier):
        environment["GTEST_FILTER"] = chosen
    skipped = False
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            skipped = skipped or line.startswith("SKIPPED: ")
            print(line, end="", flush=True)
    return skips.SKIPPED if skipped and process.returncode == 0 else process.returncode


def main(name, *command):
    tiers.MEASURED.mkdir(parents=True, exist_ok=True)
    file = tiers.MEASURED / f"{re.sub('[^A-Za-z0-9_.-]', '_', name)}.csv"
    file.unlink(missing_ok=True)
    executable = Path(command[0]).name
    rows = []
    if executable.endswith("_tests"):
        cases = file.with_suffix(".cases")
        code = run_suite(command, executable, cases)
        if cases.exists():
            rows = [(f"{executable}/{case}", s) for case, s in tiers.read_times(cases).items()]
            cases.unlink()
    else:
        code = subprocess.run(command, check=False).returncode
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows.append((re.sub(r"\.\d+of\d+$", "", name), spent.ru_utime + spent.ru_stime))
    with open(file, "w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows((each, f"{seconds:.2f}") for each, seconds in rows)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if "--" not in sys.argv:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *sys.argv[sys.argv.index("--") + 1 :]))
