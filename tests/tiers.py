# SPDX-License-Identifier: Apache-2.0
"""Which tests run when: in seconds after every change, in minutes before a commit, or all of them.

times.csv has the measured processor seconds of every test, and they alone decide its tier. A test is what ctest lists or,
in the executables of GoogleTest, a case. `tools/test` calls this program, see there.

    tests/tiers.py --rewrite          puts what the last runs measured into times.csv
    tests/tiers.py --slow EXECUTABLE  names its cases that take a second, as a part of a filter of GoogleTest
"""

import argparse
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "times.csv"
BUILD = Path(os.environ.get("PIPEWRIGHT_BUILD_DIR", ROOT / "build"))
MEASURED = BUILD / "test-times"  # a CSV of name and seconds for each test of the last run

CASE_IN_TABLE = 0.5  # seconds; faster cases have no row of their own
HEADROOM = 1.5  # of a measured time, before it is beyond a tier's limit: machines differ
PART_SECONDS = 2400  # processor seconds of a part of the exhaustive tests: at most 30 minutes on two cores, not quiet


@dataclass(frozen=True)
class Tier:
    name: str
    limit: float  # processor seconds of a test
    promise: float  # seconds on two quiet cores, with the build
    promised: str
    command: str


QUICK = Tier("quick", 1, 90, "90 s after a change of one file", "tools/test --quick")
DEFAULT = Tier("default", 12, 18 * 60, "18 min from a fresh clone without ccache", "tools/test")
ALL = Tier("all", float("inf"), float("inf"), "as long as it takes", "tools/test --all")
TIERS = [QUICK, DEFAULT, ALL]


def tier_of(seconds):
    return next(tier for tier in TIERS if seconds * HEADROOM <= tier.limit)


def read_times(file):
    with open(file, newline="", encoding="utf-8") as opened:
        return {name: float(seconds) for name, seconds in csv.reader(opened) if name != "test"}


def table():
    return read_times(TABLE) if TABLE.exists() else {}


def measured():
    times = {}
    for file in sorted(MEASURED.glob("*.csv")):
        for name, seconds in read_times(file).items():
            # The shards of an executable are rows of one name; a case is in one of them.
            times[name] = times.get(name, 0) + seconds
    return times


def slow_cases(times, executable, tier):
    """Cases of an executable that are not in this tier."""
    own = {name.removeprefix(f"{executable}/"): s for name, s in times.items() if name.startswith(f"{executable}/")}
    return sorted(case for case, seconds in own.items() if TIERS.index(tier_of(seconds)) > TIERS.index(tier))


def gtest_filter(times, executable, tier):
    """The value of GTEST_FILTER for a tier; "" for all cases."""
    slow = slow_cases(times, executable, tier)
    return f"*-{':'.join(slow)}" if slow else ""


@dataclass(frozen=True)
class Entry:
    """A test of ctest. The shards of an executable of GoogleTest have its name in the table."""

    name: str
    labels: tuple
    command: tuple

    @property
    def in_table(self):
        return re.sub(r"\.\d+of\d+$", "", self.name)

    @property
    def is_suite(self):
        return "suite" in self.labels

    def seconds(self, times):
        """Of one shard, an equal part of its executable's."""
        shards = re.search(r"\.\d+of(\d+)$", self.name)
        return times.get(self.in_table, 0) / (int(shards[1]) if shards else 1)


def entries():
    shown = subprocess.run(
        ["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    found = []
    for test in json.loads(shown.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        found.append(Entry(test["name"], tuple(properties.get("LABELS", [])), tuple(test.get("command", []))))
    return found


def belongs(entry, tier, times):
    """Executables of GoogleTest are in every tier: which of their cases run is decided in entry.py."""
    if entry.is_suite or tier is ALL:
        return True
    return tier is DEFAULT and tier_of(entry.seconds(times)) in (QUICK, DEFAULT)


def parts(exhaustive, times):
    """The exhaustive tests, dealt out into parts of PART_SECONDS at most; longest first, each into the first with room."""
    dealt = []
    for entry in sorted(exhaustive, key=lambda each: (-each.seconds(times), each.name)):
        seconds = entry.seconds(times)
        room = next((part for part in dealt if part[0] + seconds <= PART_SECONDS), None)
        if room is None:
            room = [0, []]
            dealt.append(room)
        room[0] += seconds
        room[1].append(entry)
    return [part for _, part in dealt]


def part_of_commit(exhaustive, times, commit):
    dealt = parts(exhaustive, times)
    if not dealt:
        return 0, 0, []
    which = int(hashlib.sha256(commit.encode()).hexdigest(), 16) % len(dealt)
    return which + 1, len(dealt), dealt[which]


def cases_named(pattern, suites):
    """(executable, its cases that the regular expression finds)."""
    for command in sorted({word for entry in suites for word in entry.command if Path(word).name.endswith("_tests")}):
        listed = subprocess.run([command, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
        suite, found = "", []
        for line in listed.splitlines():
            line = line.split("#")[0].rstrip()
            if line.endswith("."):
                suite = line
            elif line.startswith("  ") and re.search(pattern, suite + line.strip()):
                found.append(suite + line.strip())
        if found:
            yield command, found


def run_cases(command, cases):
    """GoogleTest takes a long filter from a file of flags only."""
    flags = BUILD / "chosen_cases"
    flags.write_text(f"--gtest_filter={':'.join(cases)}\n")
    return subprocess.run([command, f"--gtest_flagfile={flags}"], check=False).returncode


def run_ctest(arguments, tier, before_summary):
    """Runs ctest, and calls a function before its summary, so that this stays the last thing that is printed."""
    environment = {**os.environ, "PIPEWRIGHT_TIER": tier.name}
    command = ["ctest", "--output-on-failure", "--no-tests=error", "--no-label-summary", *arguments]
    with subprocess.Popen(command, cwd=BUILD, env=environment, stdout=subprocess.PIPE, text=True, errors="replace") as ctest:
        summary, at_end = [], False
        for line in ctest.stdout:
            at_end = at_end or re.match(r"\d+% tests passed", line) is not None
            if at_end:
                summary.append(line)
            else:
                print(line, end="", flush=True)
    before_summary()
    print("".join(summary), end="", flush=True)
    return ctest.returncode


def outgrown(tier_times, times):
    """Tests that took more than the limit of the tier that the table puts them in. Only cases in C++ are quick."""
    late = []
    for name, seconds in sorted(tier_times.items()):
        if name in suites_in(tier_times):
            continue
        limit = tier_of(times.get(name, 0)).limit
        if "/" not in name:
            limit = max(limit, DEFAULT.limit)
        if seconds > limit:
            late.append(f"{name}: {seconds:.1f} s, beyond the {limit:g} s of its tier")
    return late


def suites_in(times):
    """Names of executables: their seconds are those of all their cases, and put nothing into a tier."""
    return {name.split("/")[0] for name in times if "/" in name}


def few(names, most=12):
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} others" if rest > 0 else "")


def load():
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def report(tier, began, left_out, skipped_cases, times):
    """What a run says of itself."""
    spent = measured()
    seconds = time.time() - began
    print("\nThe ten slowest, in seconds of a processor:")
    for name, took in sorted(spent.items(), key=lambda each: -each[1])[:10]:
        print(f"  {took:7.1f}  {name}")
    for line in outgrown(spent, times):
        print(f"PAST ITS TIER: {line}")
    if left_out:
        print(f"\nLeft out: {few(left_out)}.")
    if skipped_cases:
        print(f"Left out of the executables: {skipped_cases} slow cases.")
    if left_out or skipped_cases:
        print(f"`{ALL.command}` runs them, and `tools/test -R NAME` one of them.")
    print(f"\n{tier.name}: {seconds / 60:.1f} min; promised on two quiet cores: {tier.promised}. Load: {load()}.\n", flush=True)


def forget_measured():
    MEASURED.mkdir(parents=True, exist_ok=True)
    for file in MEASURED.glob("*.csv"):
        file.unlink()


def rewrite():
    """Measured tests replace their rows; the others keep theirs, if ctest still has them."""
    times = {**table(), **{name: s for name, s in measured().items() if "/" not in name or s >= CASE_IN_TABLE}}
    known = {entry.in_table for entry in entries()}
    rows = [(name, s) for name, s in sorted(times.items()) if name.split("/")[0] in known]
    TABLE.write_text("test,seconds\n" + "".join(f"{name},{s:.1f}\n" for name, s in rows), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="tools/test", description="Sets up, builds and runs tests.")
    parser.add_argument("--quick", action="store_true", help="the cases of C++ that take no second, and the sources' format")
    parser.add_argument("--all", action="store_true", help="everything that this machine can run")
    parser.add_argument("--part", metavar="COMMIT", help="besides, the part of --all that is this commit's turn")
    parser.add_argument("-R", metavar="NAME", help="the tests whose names match this regular expression")
    parser.add_argument("--rewrite", action="store_true", help="put what was measured into tests/times.csv, and run nothing")
    parser.add_argument("--slow", metavar="EXECUTABLE", help="name its cases that are not quick, and run nothing")
    parser.add_argument("--began", type=float, default=time.time(), help=argparse.SUPPRESS)
    options, for_ctest = parser.parse_known_args()
    if options.rewrite:
        return rewrite()
    if options.slow:
        return print(":".join(slow_cases(table(), options.slow, QUICK)))
    times, found = table(), entries()
    tier = ALL if options.all or options.R else QUICK if options.quick else DEFAULT
    parallel = ["--parallel", str(1 + max(2, min(8, os.cpu_count() or 2)))]
    if options.R:
        named = [entry for entry in found if re.search(options.R, entry.name)]
        chosen_cases = list(cases_named(options.R, [each for each in found if each not in named]))
        failed = 0
        for command, cases in chosen_cases:
            failed = run_cases(command, cases) or failed
        if named:
            failed = run_ctest([*parallel, "-R", options.R, *for_ctest], tier, lambda: None) or failed
        if not named and not chosen_cases:
            print(f"no test is named like '{options.R}'; `ctest -N` and `build/tests/core_tests --gtest_list_tests` list them")
            return 1
        return failed
    chosen = [entry for entry in found if belongs(entry, tier, times)]
    rest = [entry for entry in found if entry not in chosen]
    if options.part:
        which, of, part = part_of_commit(rest, times, options.part)
        print(f"Of the exhaustive tests it is the turn of part {which} of {of}: {', '.join(e.name for e in part)}", flush=True)
        chosen += part
        rest = [entry for entry in rest if entry not in part]
    forget_measured()
    left_out = sorted({entry.in_table for entry in rest})
    cases = sum(len(slow_cases(times, suite, tier)) for suite in {e.in_table for e in chosen if e.is_suite})
    pattern = f"^({'|'.join(re.escape(entry.name) for entry in chosen)})$"
    failed = run_ctest(
        [*parallel, "-R", pattern, *for_ctest], tier, lambda: report(tier, options.began, left_out, cases, times)
    )
    late = outgrown(measured(), times)
    if tier is ALL and late:
        print(f"{len(late)} tests have grown past their tiers:", *late, sep="\n  ")
        return failed or 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
