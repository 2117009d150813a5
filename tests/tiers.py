# SPDX-License-Identifier: Apache-2.0
"""Which tests run when: in seconds after every change, in minutes before a commit, or all of them.

times.csv has the measured processor seconds of every test, and they alone decide its tier, but for one thing: a test that
needs more than tools/setup installs (label `extra`) is in the default tier of continuous integration only. A test is what
ctest lists or, in the executables of GoogleTest, a case. `tools/test` calls this program, see there.

Seconds of the table, limits and promises are those of one machine, the reference: it takes REFERENCE seconds to compile and
run reference.cpp. Each run measures how long the machine takes that it is on, and divides what it has measured accordingly.

    tests/tiers.py --rewrite          puts what the last runs measured into times.csv
    tests/tiers.py --slow EXECUTABLE  names its cases that take a second, as a part of a filter of GoogleTest
"""

import argparse
import csv
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import skips

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "times.csv"
BUILD = Path(os.environ.get("PIPEWRIGHT_BUILD_DIR", ROOT / "build"))
OUTCOMES = "test-outcomes.xml"  # in it, what ctest says of its last run
MEASURED = BUILD / "test-times"  # of each test of the last run: a CSV of name and seconds, and what it skipped

REFERENCE = 4.0  # processor seconds
CASE_IN_TABLE = 0.5  # seconds; faster cases have no row of their own
GROWN = 1.5  # times the limit of its tier: a test that takes longer has grown past it
PART_SECONDS = 1200  # processor seconds, of the machine that it runs on, of a part of the exhaustive tests

# What documents promise, in minutes on two quiet cores of the reference. e2e/tiers_test.py holds the documents to them.
QUICKSTART_MINUTES = 4
DEFAULT_MINUTES = 9
CI_MINUTES = 40


@dataclass(frozen=True)
class Tier:
    name: str
    limit: float  # processor seconds of a test of ctest; 0: the tier has none but executables of GoogleTest
    case_limit: float  # and of a case of such an executable
    promise: float  # seconds on two quiet cores, with the build
    condition: str
    command: str


QUICK = Tier("quick", 0, 1, 90, "after a change of one file", "tools/test --quick")
DEFAULT = Tier("default", 5, 2, DEFAULT_MINUTES * 60, "from a fresh clone without ccache", "tools/test")
ALL = Tier("all", float("inf"), float("inf"), float("inf"), "", "tools/test --all")
TIERS = [QUICK, DEFAULT, ALL]
CI = Tier("default", DEFAULT.limit, DEFAULT.case_limit, CI_MINUTES * 60, "on a new machine", ".ci/run")


def limit_of(name, seconds):
    """The limit of the tier that a test is in which has been measured to take so long."""
    limits = [tier.case_limit for tier in TIERS] if "/" in name else [DEFAULT.limit, ALL.limit]
    return next(limit for limit in limits if seconds <= limit)


def read_times(file):
    with open(file, newline="", encoding="utf-8") as opened:
        return {name: float(seconds) for name, seconds in csv.reader(opened) if name != "test"}


def table():
    return read_times(TABLE) if TABLE.exists() else {}


def measure_reference():
    """Two at once, as tests run: a core is slower while the other one works."""
    folder = BUILD / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CXX") or "c++"
    compile_and_run = f"{compiler} -std=c++20 -O2 '{ROOT}/tests/reference.cpp' -o $0 && $0 >$0.out"

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    both = [
        subprocess.Popen(["sh", "-c", compile_and_run, folder / name], env={**os.environ, "CCACHE_DISABLE": "1"})
        for name in ("one", "two")
    ]
    if any([each.wait() for each in both]):
        sys.exit(f"tests/reference.cpp: '{compiler}' cannot compile it, or it does not run")
    with open(MEASURED / "reference.csv", "w", encoding="utf-8") as opened:
        opened.write(f"reference,{(spent() - before) / 2:.2f}\n")


def slowness():
    """How many times slower than the reference this machine was when the reference was measured last."""
    file = MEASURED / "reference.csv"
    return read_times(file)["reference"] / REFERENCE if file.exists() else 1


def measured():
    """What the last run took, in the seconds of the reference."""
    times = {}
    for file in sorted(MEASURED.glob("*.csv")):
        for name, seconds in read_times(file).items():
            # The shards of an executable are rows of one name; a case is in one of them.
            times[name] = times.get(name, 0) + seconds / slowness()
    times.pop("reference", None)
    return times


def slow_cases(times, executable, tier):
    """Cases of an executable that are not in this tier."""
    own = {name.removeprefix(f"{executable}/"): s for name, s in times.items() if name.startswith(f"{executable}/")}
    return sorted(case for case, seconds in own.items() if seconds > tier.case_limit)


def gtest_filter(times, executable, tier, slow=False):
    """The value of GTEST_FILTER for a tier, or for the cases that are too slow for it; "" for all cases."""
    left_out = ":".join(slow_cases(times, executable, tier))
    if slow:
        return left_out or "-*"
    return f"*-{left_out}" if left_out else ""


def without_shard(name):
    return re.sub(r"\.\d+of\d+$", "", name)


@dataclass(frozen=True)
class Entry:
    """A test of ctest. The shards of an executable of GoogleTest have its name in the table."""

    name: str
    labels: tuple
    command: tuple

    @property
    def in_table(self):
        return without_shard(self.name)

    @property
    def is_suite(self):
        return "suite" in self.labels

    def seconds(self, times):
        """Of one shard, an equal part of its executable's; of the slow cases, the sum."""
        if self.in_table.endswith("_slow"):
            executable = self.in_table.removesuffix("_slow")
            return sum(times[f"{executable}/{case}"] for case in slow_cases(times, executable, DEFAULT))
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


def belongs(entry, tier, times, extras=False):
    """Executables of GoogleTest are in every tier: which of their cases run is decided in entry.py."""
    if entry.is_suite or tier is ALL:
        return True
    return tier is DEFAULT and entry.seconds(times) <= tier.limit and (extras or "extra" not in entry.labels)


def parts(exhaustive, times, slow=1):
    """The exhaustive tests, dealt out into parts of PART_SECONDS at most; longest first, each into the first with room.

    Those that take longer by themselves are in none.
    """
    dealt = []
    for entry in sorted(exhaustive, key=lambda each: (-each.seconds(times), each.name)):
        seconds = entry.seconds(times) * slow
        if seconds > PART_SECONDS:
            continue
        room = next((part for part in dealt if part[0] + seconds <= PART_SECONDS), None)
        if room is None:
            room = [0, []]
            dealt.append(room)
        room[0] += seconds
        room[1].append(entry)
    return [part for _, part in dealt]


def part_of_commit(exhaustive, times, commit, slow=1):
    dealt = parts(exhaustive, times, slow)
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
    command = ["ctest", "--output-on-failure", "--no-tests=error", "--no-label-summary", "--output-junit", OUTCOMES, *arguments]
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


def outcomes():
    """The tests of the last run of ctest by what became of them: passed, failed, skipped as a whole."""
    file = BUILD / OUTCOMES
    tests = list(ElementTree.parse(file).iter("testcase")) if file.exists() else []
    return [[test.get("name") for test in tests if test.get("status") == each] for each in ("run", "fail", "notrun")]


def skipped():
    """[(what this machine lacks, in words; what would make them run; the tests, or parts of one, that were skipped)]."""
    found = {}
    for file in sorted(MEASURED.glob("*.skips")):
        for line in file.read_text(encoding="utf-8").splitlines():
            what, why, remedy = skips.read(line)
            test = f"{without_shard(file.stem)}: {what}" if what else file.stem
            found.setdefault(remedy or why, (why, remedy, []))[2].append(test)
    return list(found.values())


def outgrown(tier_times, times):
    """Tests that took far more than the limit of the tier that the table puts them in."""
    late = []
    for name, seconds in sorted(tier_times.items()):
        if name in suites_in(tier_times):
            continue
        limit = limit_of(name, times.get(name, 0))
        if seconds > limit * GROWN:
            late.append(f"{name}: {seconds:.1f} s, beyond the {limit:g} s of its tier")
    return late


def suites_in(times):
    """Names of executables: their seconds are those of all their cases, and put nothing into a tier."""
    return {name.split("/")[0] for name in times if "/" in name}


def few(names, most=12):
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} others" if rest > 0 else "")


def minutes(seconds):
    return f"{seconds / 60:.1f} min"


def timing(began, promise, slow):
    """How long it took, and was promised to take: on a slow machine everything takes longer."""
    said = f"Time: {minutes(time.time() - began)}"
    if promise.promise == float("inf"):
        return f"{said}."
    promised = f"{minutes(promise.promise * slow)} are promised {promise.condition}, on two quiet cores"
    return f"{said}; {promised} that take {slow:.2f} times as long as the reference's."


def last_release():
    """The last tag or, in a clone without tags, the commit that changed the version."""
    for command in (
        ["git", "describe", "--tags", "--abbrev=0"],
        ["git", "log", "-1", "--format=%h", "-G", "define PIPEWRIGHT_VERSION", "--", "core/base/version.h"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return None


def growth(numstat):
    """Lines added and deleted in the product and in the tests, from what `git diff --numstat` prints."""
    lines = {"product": [0, 0], "tests": [0, 0]}
    for line in numstat.splitlines():
        added, deleted, path = line.split("\t")
        if added != "-" and path.endswith((".cpp", ".h", ".cu", ".py", ".sh", ".cmake")):
            changed = lines["tests" if "tests" in path.split("/")[:-1] else "product"]
            changed[0] += int(added)
            changed[1] += int(deleted)
    return lines


def lines_since_release():
    since = last_release()
    if since is None:
        return "Nobody knows what was added since the last release: this is no clone of the repository."
    numstat = subprocess.run(["git", "diff", "--numstat", since], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    said = ", ".join(f"{where} +{added} -{deleted}" for where, (added, deleted) in growth(numstat).items())
    return f"Lines since {since}: {said}. A release deletes a third of what it adds."


def report(began, promise, left_out=(), slow_cases_left_out=0):
    """What a run says of itself at its end."""
    passed, failed, not_run = outcomes()
    print(f"\nPassed: {len(passed)} tests.")
    print(f"Failed: {few(failed) if failed else 'none'}.")
    lacking = skipped()
    print(f"Skipped: {len(not_run)} tests, and some of the others' cases:" if lacking else "Skipped: none.")
    for why, remedy, tests in lacking:
        print(f"  {few(tests, 4)}: {why}.{f' To run: {remedy}.' if remedy else ''}")
    if left_out:
        cases = f", and {slow_cases_left_out} slow cases in C++" if slow_cases_left_out else ""
        print(f"Left out by tier: {len(left_out)} tests ({few(left_out)}){cases}.", end=" ")
        print(f"`{ALL.command}` runs them, and `tools/test -R NAME` one of them.")
    print(timing(began, promise, slowness()), flush=True)


def report_of_all(times):
    """What grows: the slowest tests, those past their tiers, and the lines."""
    spent = measured()
    print("\nThe ten slowest, in seconds of the reference's processor:")
    for name, took in sorted(spent.items(), key=lambda each: -each[1])[:10]:
        print(f"  {took:7.1f}  {name}")
    for line in outgrown(spent, times):
        print(f"PAST ITS TIER: {line}")
    print(f"\n{lines_since_release()}")


def forget_measured():
    MEASURED.mkdir(parents=True, exist_ok=True)
    for file in (*MEASURED.glob("*.csv"), *MEASURED.glob("*.skips"), BUILD / OUTCOMES):
        file.unlink(missing_ok=True)


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
    forget_measured()
    measure_reference()
    if options.R:
        named = [entry for entry in found if re.search(options.R, entry.name)]
        chosen_cases = list(cases_named(options.R, [each for each in found if each not in named]))
        failed = 0
        for command, cases in chosen_cases:
            failed = run_cases(command, cases) or failed
        if named:
            failed = run_ctest([*parallel, "-R", options.R, *for_ctest], tier, lambda: report(options.began, ALL)) or failed
        if not named and not chosen_cases:
            print(f"no test is named like '{options.R}'; `ctest -N` and `build/tests/core_tests --gtest_list_tests` list them")
            return 1
        return failed
    chosen = [entry for entry in found if belongs(entry, tier, times, extras=bool(options.part))]
    rest = [entry for entry in found if entry not in chosen]
    if options.part:
        which, of, part = part_of_commit(rest, times, options.part, slowness())
        print(f"Of the exhaustive tests it is the turn of part {which} of {of}: {', '.join(e.name for e in part)}", flush=True)
        chosen += part
        if too_long := [entry.name for entry in rest if entry.seconds(times) * slowness() > PART_SECONDS]:
            print(f"Too long for any part, so that only `{ALL.command}` runs them: {', '.join(too_long)}", flush=True)
        rest = [entry for entry in rest if entry not in part]
    left_out = sorted({entry.in_table for entry in rest})
    suites = {entry.in_table for entry in chosen if entry.is_suite} if tier is QUICK else ()
    cases = sum(len(slow_cases(times, suite, tier)) for suite in suites)
    pattern = f"^({'|'.join(re.escape(entry.name) for entry in chosen)})$"

    def at_end():
        if tier is ALL:
            report_of_all(times)
        report(options.began, CI if options.part else tier, left_out, cases)

    failed = run_ctest([*parallel, "-R", pattern, *for_ctest], tier, at_end)
    late = outgrown(measured(), times)
    if tier is ALL and late:
        print(f"{len(late)} tests have grown past their tiers:", *late, sep="\n  ")
        return failed or 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
