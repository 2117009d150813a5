# SPDX-License-Identifier: Apache-2.0
"""Measured seconds alone decide when a test runs, and whoever grows past its tier is named; see ../tiers.py."""

import contextlib
import io
import os
import re
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
        quick, default, test = tiers.QUICK.case_limit, tiers.DEFAULT.case_limit, tiers.DEFAULT.limit
        for name, seconds, limit in (
            ("some_tests/A.B", 0, quick), ("some_tests/A.B", quick, quick), ("some_tests/A.B", quick + 0.1, default),
            ("some_tests/A.B", default, default), ("some_tests/A.B", default + 0.1, tiers.ALL.limit),
            ("some", 0, test), ("some", test, test), ("some", test + 0.1, tiers.ALL.limit),
        ):
            self.assertEqual(tiers.limit_of(name, seconds), limit, (name, seconds))

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
        times = {"slow_tests": 4 * tiers.DEFAULT.limit}
        self.assertEqual(entry("slow_tests.1of4").seconds(times), tiers.DEFAULT.limit)
        self.assertEqual(entry("slow_tests").seconds(times), 4 * tiers.DEFAULT.limit)
        self.assertTrue(tiers.belongs(entry("slow_tests.4of4"), tiers.DEFAULT, times))
        self.assertFalse(tiers.belongs(entry("slow_tests.2of2"), tiers.DEFAULT, times))

    def test_slow_cases_are_filtered_out(self):
        times = {"some_tests": 80, "some_tests/A.B": tiers.DEFAULT.case_limit, "some_tests/A.C": 70, "other_tests/D.E": 9}
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.QUICK), "*-A.B:A.C")
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.DEFAULT), "*-A.C")
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.ALL), "")
        self.assertEqual(tiers.gtest_filter(times, "some_tests", tiers.DEFAULT, slow=True), "A.C")
        self.assertEqual(tiers.gtest_filter(times, "quick_tests", tiers.DEFAULT, slow=True), "-*")
        self.assertEqual(entry("some_tests_slow.1of1").seconds(times), 70)

    def test_sanitizers_as_a_part_leave_out_what_is_not_quick(self):
        done = subprocess.run(
            [sys.executable, "-B", TESTS / "tiers.py", "--slow", "lab_tests"], capture_output=True, text=True, check=True
        )
        slow = tiers.slow_cases(tiers.table(), "lab_tests", tiers.QUICK)
        self.assertGreater(len(slow), 0)
        self.assertEqual(done.stdout, ":".join(slow) + "\n")

    def test_what_needs_more_than_the_set_up_installs_is_in_the_default_tier_of_continuous_integration_only(self):
        needing = entry("needing", "extra")
        self.assertFalse(tiers.belongs(needing, tiers.DEFAULT, {"needing": 1}))
        self.assertTrue(tiers.belongs(needing, tiers.DEFAULT, {"needing": 1}, extras=True))
        self.assertFalse(tiers.belongs(needing, tiers.DEFAULT, {"needing": 100}, extras=True))
        self.assertTrue(tiers.belongs(needing, tiers.ALL, {"needing": 1}))

    def test_a_test_past_its_tier_is_named(self):
        quick, default = tiers.QUICK.case_limit * tiers.GROWN, tiers.DEFAULT.limit * tiers.GROWN
        times = {"short": 3, "some_tests/A.B": 2, "some_tests": 500}
        spent = {
            "short": default + 1, "some_tests/A.B": 2.5, "some_tests/New.Case": quick + 0.1, "some_tests/Small.Case": quick - 0.1,
            "some_tests": 500, "new": default + 1, "small": default - 1,
        }
        named = [line.split(":")[0] for line in tiers.outgrown(spent, times)]
        self.assertEqual(named, ["new", "short", "some_tests/New.Case"])

    def test_every_exhaustive_test_has_its_turn_and_no_part_is_too_long(self):
        times = {f"t{i}": tiers.PART_SECONDS * (i + 1) / 20 for i in range(20)}
        exhaustive = [entry(name) for name in times]
        parts = tiers.parts(exhaustive, times)
        self.assertEqual(sorted(each.name for part in parts for each in part), sorted(times))
        for part in parts:
            self.assertLessEqual(sum(times[each.name] for each in part), tiers.PART_SECONDS)
        drawn = {tiers.part_of_commit(exhaustive, times, f"commit {i}")[0] for i in range(100)}
        self.assertEqual(drawn, set(range(1, len(parts) + 1)))

    def test_a_part_has_less_in_it_on_a_slow_machine_and_nothing_that_no_part_has_room_for(self):
        times = {"half": tiers.PART_SECONDS / 2, "other_half": tiers.PART_SECONDS / 2, "whole": tiers.PART_SECONDS}
        exhaustive = [entry(name) for name in times]
        self.assertEqual([len(part) for part in tiers.parts(exhaustive, times)], [1, 2])
        self.assertEqual([each.name for part in tiers.parts(exhaustive, times, 2) for each in part], ["half", "other_half"])
        self.assertEqual(tiers.part_of_commit(exhaustive, times, "a commit", 3), (0, 0, []))

    def test_the_default_tests_take_a_third_of_the_promise(self):
        """If they keep both cores busy for four fifths of their time."""
        times = tiers.table()
        default = sum(each.seconds(times) for each in tiers.entries() if tiers.belongs(each, tiers.DEFAULT, times))
        self.assertLess(default / 2 / 0.8, tiers.DEFAULT.promise / 3)


class Reference(unittest.TestCase):
    """Whatever machine measures, the table has the seconds of one."""

    def setUp(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pipewright-e2e-")))
        self.enterContext(mock.patch.object(tiers, "BUILD", folder))
        self.measured = self.enterContext(mock.patch.object(tiers, "MEASURED", folder / "test-times"))
        self.measured.mkdir()

    def test_seconds_are_divided_by_how_much_slower_the_machine_is(self):
        (self.measured / "some.csv").write_text("some,6\n")
        self.assertEqual(tiers.measured(), {"some": 6})
        (self.measured / "reference.csv").write_text(f"reference,{3 * tiers.REFERENCE}\n")
        self.assertEqual(tiers.measured(), {"some": 2})
        self.assertEqual(tiers.slowness(), 3)

    def test_is_measured(self):
        """With a small program in its place."""
        (self.measured.parent / "tests").mkdir()
        (self.measured.parent / "tests/reference.cpp").write_text("int main() {}\n")
        with mock.patch.object(tiers, "ROOT", self.measured.parent):
            tiers.measure_reference()
        self.assertTrue(0 < tiers.slowness() < 1, tiers.slowness())

    def test_a_slow_machine_is_promised_more(self):
        said = f"; {tiers.DEFAULT_MINUTES:.1f} min are promised from a fresh clone without ccache, "
        self.assertIn(said, tiers.timing(0, tiers.DEFAULT, 1))
        said = f"; {2 * tiers.CI_MINUTES:.1f} min are promised on a new machine, on two quiet cores that take 2.00 times as long "
        self.assertIn(said, tiers.timing(0, tiers.CI, 2))
        self.assertRegex(tiers.timing(0, tiers.ALL, 1), r"^Time: [\d.]+ min\.$")


class Lines(unittest.TestCase):
    def test_of_product_and_tests_are_counted(self):
        numstat = "10\t2\tcore/base/text.cpp\n3\t4\ttests/unit/{old => new}/a.h\n5\t0\tpython/tests/b.py\n-\t-\tdocs/c.png\n9\t9\tREADME.md\n"
        self.assertEqual(tiers.growth(numstat), {"product": [10, 2], "tests": [8, 4]})


WORDS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "fifteen": 15, "twenty": 20, "half a": 0.5}
DURATION = re.compile(rf"\b(\d+(?:\.\d+)?|half a|{'|'.join(WORDS)}) (s|seconds?|min|minutes?|hours?)\b")
COMMAND = re.compile(r"tools/quickstart|\.ci/run|tools/test(?: --quick| --all| -R)?")
DOCUMENTED = {  # the seconds that a page may say where it names a command
    "tools/quickstart": {60 * tiers.QUICKSTART_MINUTES},
    ".ci/run": {tiers.CI.promise},
    "tools/test --quick": {tiers.QUICK.case_limit, tiers.QUICK.promise},
    "tools/test": {tiers.DEFAULT.limit, tiers.DEFAULT.case_limit, tiers.DEFAULT.promise},
}


def seconds_said(text):
    for number, unit in DURATION.findall(text):
        yield (WORDS[number] if number in WORDS else float(number)) * {"s": 1, "m": 60, "h": 3600}[unit[0]]


def sentences(text):
    """Rows of tables, lines of code, and sentences."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        if re.match(r"\||```|    |#", paragraph):
            yield from lines
        else:
            yield from re.split(r"(?<=[.:;]) ", " ".join(lines))


def promises(text):
    """(commands, seconds, sentence) of what a page says of times where it names commands."""
    for sentence in sentences(text):
        commands = set(COMMAND.findall(sentence))
        for seconds in seconds_said(sentence) if commands else ():
            yield commands, seconds, sentence


class Documents(unittest.TestCase):
    """Say of times what tiers.py says."""

    PAGES = [
        harness.SOURCE_DIR / name
        for name in ("README.md", "CONTRIBUTING.md", "tests/README.md", "tools/README.md", "tools/test", ".ci/run", "tools/quickstart")
    ] + sorted((harness.SOURCE_DIR / "docs/manual").rglob("*.md"))

    def test_promise_nothing_else(self):
        for page in self.PAGES:
            for commands, seconds, sentence in promises(page.read_text(encoding="utf-8")):
                allowed = set().union(*(DOCUMENTED.get(each, set()) for each in commands))
                with self.subTest(page.name, sentence=sentence):
                    self.assertIn(seconds, allowed)

    def test_name_limits_and_promises(self):
        for name, expected in (
            ("README.md", {"tools/quickstart": DOCUMENTED["tools/quickstart"], "tools/test": {tiers.DEFAULT.limit, tiers.DEFAULT.promise}}),
            ("CONTRIBUTING.md", {command: DOCUMENTED[command] for command in ("tools/test --quick", "tools/test", ".ci/run")}),
        ):
            said = list(promises((harness.SOURCE_DIR / name).read_text(encoding="utf-8")))
            for command, times in expected.items():
                with self.subTest(name, command=command):
                    self.assertEqual({s for commands, s, _ in said if commands == {command}}, times)

    def test_with_other_times_are_found(self):
        text = (
            "Call `tools/test`, which takes a\nminute. A scheme compiles in 2 s.\n\n| `tools/test --quick` | 12 s |\n\n"
            "```sh\ntools/quickstart  # 0.5 hours\n```\n"
        )
        self.assertEqual(
            [(commands, seconds) for commands, seconds, _ in promises(text)],
            [({"tools/test"}, 60), ({"tools/test --quick"}, 12), ({"tools/quickstart"}, 1800)],
        )


class Modules(unittest.TestCase):
    def test_every_module_is_run_by_a_test_of_ctest(self):
        run = {word for each in tiers.entries() for word in each.command}
        forgotten = [path.name for path in (TESTS / "e2e").glob("*_test.py") if str(path) not in run]
        self.assertEqual(forgotten, [])


    def test_slow_cases_are_run_by_a_test_of_ctest(self):
        times, run = tiers.table(), {each.in_table for each in tiers.entries()}
        for executable in sorted(tiers.suites_in(times)):
            if tiers.slow_cases(times, executable, tiers.DEFAULT):
                self.assertIn(f"{executable}_slow", run)


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
    def test_cases_of_an_executable_are_measured_and_skips_are_told(self):
        code, said, times = self.run_entry("skipping_tests.1of1", SKIPPING_TESTS)
        self.assertEqual(code, 0, said)
        self.assertIn("SKIPPED: Skipping.WhereThereIsNoGpu: lacks gpu: there are none\n", said)
        self.assertEqual(set(times), {
            "skipping_tests", *(f"skipping_tests/Skipping.{case}" for case in ("WhereThereIsNoGpu", "WithoutAWordForIt", "Passes"))
        })
        with mock.patch.object(tiers, "MEASURED", self.folder / "test-times"):
            self.assertEqual(tiers.skipped(), [
                ("there are none", skips.THINGS["gpu"][1], ["skipping_tests: Skipping.WhereThereIsNoGpu"]),
                ("no reason at all", "", ["skipping_tests: Skipping.WithoutAWordForIt"]),
            ])
        code, said, _ = self.run_entry("skipping_tests.1of1", SKIPPING_TESTS, PIPEWRIGHT_MAY_LACK="slurm")
        self.assertEqual(code, 1, said)
        code, said, _ = self.run_entry("skipping_tests.1of1", SKIPPING_TESTS, GTEST_FILTER="*Gpu")
        self.assertEqual(code, skips.SKIPPED, said)

    def run_ctest(self, **commands):
        """What is printed and the exit code of tests that are scripts in Python."""
        listed = [
            f'add_test({name} "{sys.executable}" -B "{TESTS}/entry.py" {name} -- "{sys.executable}" -c "{script}")\n'
            f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT PIPEWRIGHT_BUILD_DIR={self.folder})\n"
            for name, script in commands.items()
        ]
        (self.folder / "CTestTestfile.cmake").write_text("".join(listed))
        said = io.StringIO()
        with (
            mock.patch.object(tiers, "BUILD", self.folder),
            mock.patch.object(tiers, "MEASURED", self.folder / "test-times"),
            contextlib.redirect_stdout(said),
        ):
            code = tiers.run_ctest([], tiers.DEFAULT, lambda: tiers.report(0, tiers.DEFAULT, ["long", "longer"], 7))
        return said.getvalue(), code

    def test_the_end_says_what_passed_failed_and_was_skipped_and_why_and_then_the_summary_of_ctest(self):
        said, code = self.run_ctest(
            fine="pass",
            part="print('SKIPPED: A.test_b: lacks gnuplot: none here')",
            whole="print('SKIPPED: lacks slurm: not root'); raise SystemExit(77)",
        )
        self.assertEqual(code, 0, said)
        told, summary = said.split("Passed: ")[1].split("100% tests passed, 0 tests failed out of 3")
        told, time = told.split("Time: ")
        self.assertEqual(
            told.splitlines(),
            [
                "2 tests.", "Failed: none.", "Skipped: 1 tests, and some of the others' cases:",
                f"  part: A.test_b: none here. To run: {skips.THINGS['gnuplot'][1]}.",
                f"  whole: not root. To run: {skips.THINGS['slurm'][1]}.",
                "Left out by tier: 2 tests (long, longer), and 7 slow cases in C++. "
                "`tools/test --all` runs them, and `tools/test -R NAME` one of them.",
            ],
        )
        self.assertRegex(time, r"^[\d.]+ min; [\d.]+ min are promised ")
        self.assertRegex(summary, r"Total Test time \(real\) = +[\d.]+ sec\n\nThe following tests did not run:\n\s+3 - whole \(Skipped\)\n")

    def test_a_failure_is_named(self):
        said, code = self.run_ctest(fine="pass", wrong="raise SystemExit(3)")
        self.assertNotEqual(code, 0)
        self.assertIn("Passed: 1 tests.\nFailed: wrong.\nSkipped: none.\n", said)


if __name__ == "__main__":
    harness.main()
