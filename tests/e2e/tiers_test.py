# SPDX-License-Identifier: Apache-2.0
"""Measured seconds alone decide when a test runs, and whoever grows past its tier is named; see ../tiers.py."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import harness
import skips
import tiers

TESTS = harness.SOURCE_DIR / "tests"
SKIPPING_TESTS = os.environ.get("PIPEWRIGHT_SKIPPING_TESTS")


def entry(name, *labels):
    return tiers.Entry(name, labels, ("some_tests",))


class Table(unittest.TestCase):
    def test_seconds_decide_the_tier(self):
        for seconds, tier in ((0, tiers.QUICK), (0.6, tiers.QUICK), (0.7, tiers.DEFAULT), (7.9, tiers.DEFAULT), (8.1, tiers.ALL)):
            self.assertIs(tiers.tier_of(seconds), tier, seconds)

    def test_quick_has_the_suites_and_default_what_is_no_longer_than_its_limit(self):
        times = {"short": 3, "long": 100}
        for name, labels, in_tiers in (
            ("some_tests.1of2", ["suite"], tiers.TIERS),
            ("short", [], [tiers.DEFAULT, tiers.ALL]),
            ("never_measured", [], [tiers.DEFAULT, tiers.ALL]),
            ("long", [], [tiers.ALL]),
        ):
            for tier in tiers.TIERS:
                self.assertEqual(tiers.belongs(entry(name, *labels), tier, times), tier in in_tiers, (name, tier.name))

    def test_a_shard_has_its_part_of_the_seconds(self):
        times = {"slow_tests": 30}
        self.assertEqual(entry("slow_tests.1of4").seconds(times), 7.5)
        self.assertEqual(entry("slow_tests").seconds(times), 30)
        self.assertTrue(tiers.belongs(entry("slow_tests.4of4"), tiers.DEFAULT, times))
        self.assertFalse(tiers.belongs(entry("slow_tests.2of2"), tiers.DEFAULT, times))

    def test_slow_cases_are_filtered_out(self):
        times = {"some_tests": 80, "some_tests/A.B": 2, "some_tests/A.C": 70, "other_tests/D.E": 9}
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.QUICK), "*-A.B:A.C")
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.DEFAULT), "*-A.C")
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.ALL), "")

    def test_sanitizers_as_a_part_leave_out_what_is_not_quick(self):
        done = subprocess.run(
            [sys.executable, "-B", TESTS / "tiers.py", "--slow", "lab_tests"], capture_output=True, text=True, check=True
        )
        slow = tiers.slow_cases(tiers.table(), "lab_tests", tiers.QUICK)
        self.assertGreater(len(slow), 0)
        self.assertEqual(done.stdout, ":".join(slow) + "\n")

    def test_a_test_past_its_tier_is_named(self):
        times = {"short": 3, "some_tests/A.B": 2, "some_tests": 500}
        spent = {"short": 91, "some_tests/A.B": 2, "some_tests/New.Case": 1.5, "some_tests": 500, "new": 95, "small": 5}
        named = [line.split(":")[0] for line in tiers.outgrown(spent, times)]
        self.assertEqual(named, ["new", "short", "some_tests/New.Case"])

    def test_every_exhaustive_test_has_its_turn_and_no_part_is_too_long(self):
        times = {f"t{i}": 100 * (i + 1) for i in range(20)}
        exhaustive = [entry(name) for name in times]
        parts = tiers.parts(exhaustive, times)
        self.assertEqual(sorted(each.name for part in parts for each in part), sorted(times))
        for part in parts:
            self.assertLessEqual(sum(times[each.name] for each in part), tiers.PART_SECONDS)
        drawn = {tiers.part_of_commit(exhaustive, times, f"commit {i}")[0] for i in range(100)}
        self.assertEqual(drawn, set(range(1, len(parts) + 1)))

    def test_the_promise_can_be_held(self):
        """The default tests keep two cores busy for two thirds of their time, and the builds took 11.1 minutes of quiet ones."""
        times = tiers.table()
        left_out = {}
        for name, seconds in times.items():
            if "/" in name and tiers.tier_of(seconds) is tiers.ALL:
                left_out[name.split("/")[0]] = left_out.get(name.split("/")[0], 0) + seconds
        shards = [each for each in tiers.entries() if tiers.belongs(each, tiers.DEFAULT, times)]
        default = sum(each.seconds(times) for each in shards) - sum(left_out.values())
        self.assertLess(default / 2 * 1.5 + 11.1 * 60, tiers.DEFAULT.promise)


class Modules(unittest.TestCase):
    def test_every_module_is_run_by_a_test_of_ctest(self):
        run = {word for each in tiers.entries() for word in each.command}
        forgotten = [path.name for path in (TESTS / "e2e").glob("*_test.py") if str(path) not in run]
        self.assertEqual(forgotten, [])


class Names(unittest.TestCase):
    @skips.needs("test-programs", SKIPPING_TESTS)
    def test_find_cases_of_executables(self):
        suites = [tiers.Entry("skipping_tests.1of1", (), ("python3", "entry.py", "--", SKIPPING_TESTS, "--gtest_brief=1"))]
        self.assertEqual(
            list(tiers.cases_named(r"Skipping\.(Pass|Where)", suites)),
            [(SKIPPING_TESTS, ["Skipping.WhereThereIsNoGpu", "Skipping.Passes"])],
        )
        self.assertEqual(list(tiers.cases_named("Nothing", suites)), [])


class Entries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_entry(self, name, *command, **variables):
        environment = {each: value for each, value in os.environ.items() if not each.startswith(("PIPEWRIGHT_", "GTEST_"))}
        done = subprocess.run(
            [sys.executable, "-B", TESTS / "entry.py", name, "--", *command], capture_output=True, text=True, check=False,
            env={**environment, "PIPEWRIGHT_BUILD_DIR": str(self.folder), **variables},
        )
        file = self.folder / "test-times" / f"{name}.csv"
        return done.returncode, done.stdout, tiers.read_times(file) if file.exists() else {}

    def test_a_test_is_measured_and_has_its_own_exit_code(self):
        busy = "import time; began = time.process_time()\nwhile time.process_time() < began + 0.3: pass\nraise SystemExit(3)"
        code, _, times = self.run_entry("busy", sys.executable, "-c", busy)
        self.assertEqual(code, 3)
        self.assertGreaterEqual(times["busy"], 0.3)

    @skips.needs("test-programs", SKIPPING_TESTS)
    def test_cases_of_an_executable_are_measured_and_skips_are_counted(self):
        code, said, times = self.run_entry("skipping_tests.1of1", SKIPPING_TESTS)
        self.assertEqual(code, skips.SKIPPED, said)
        self.assertIn("SKIPPED: Skipping.WhereThereIsNoGpu: lacks gpu: there are none\n", said)
        self.assertEqual(set(times), {
            "skipping_tests", *(f"skipping_tests/Skipping.{case}" for case in ("WhereThereIsNoGpu", "WithoutAWordForIt", "Passes"))
        })
        code, said, _ = self.run_entry("skipping_tests.1of1", SKIPPING_TESTS, PIPEWRIGHT_MAY_LACK="slurm")
        self.assertEqual(code, 1, said)

    def test_the_summary_of_ctest_comes_last(self):
        (self.folder / "CTestTestfile.cmake").write_text(f"add_test(fine {sys.executable} -c pass)\n")
        said = io.StringIO()
        with mock.patch.object(tiers, "BUILD", self.folder), contextlib.redirect_stdout(said):
            code = tiers.run_ctest([], tiers.QUICK, lambda: print("our own words"))
        self.assertEqual(code, 0)
        own, summary = said.getvalue().index("our own words"), said.getvalue().index("100% tests passed, 0 tests failed out of 1")
        self.assertLess(own, summary)


if __name__ == "__main__":
    harness.main()
