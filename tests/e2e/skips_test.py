# SPDX-License-Identifier: Apache-2.0
"""A skip is told at the end and, where a machine should have had the thing, a failure; see ../skips.py.

Modules, scripts and an executable that skip on purpose run under a ctest of their own.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import harness
import skips

TESTS = harness.SOURCE_DIR / "tests"
BUILD = os.environ.get("PIPEWRIGHT_BUILD_DIR")
SKIPPING_TESTS = os.environ.get("PIPEWRIGHT_SKIPPING_TESTS")

MODULE = f"""
import sys
import unittest
sys.path.insert(0, {str(TESTS)!r})
import skips

class Some(unittest.TestCase):
    def test_passes(self):
        pass

    @skips.needs("gpu", False)
    def test_skips(self):
        self.fail("skipped")

class All(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        skips.lacks("slurm", "said in its own words")

    def test_whatever(self):
        self.fail("skipped")

class Part(unittest.TestCase):
    def test_with_one_part_left_out(self):
        for _ in range(2):
            skips.left_out("plots", "gnuplot")

class Subtest(unittest.TestCase):
    def test_of_two(self):
        for number in (1, 2):
            with self.subTest(number=number):
                if number == 2:
                    skips.lacks("pmix")

class Wordless(unittest.TestCase):
    @unittest.skip("no reason at all")
    def test_skips(self):
        self.fail("skipped")

class Wrong(unittest.TestCase):
    def test_fails(self):
        self.fail("on purpose")

class Nothing(unittest.TestCase):
    pass

skips.main()
"""


class Skips(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "module.py").write_text(MODULE)

    def run_with(self, may_lack, *command):
        """Exit code and output, where $PIPEWRIGHT_MAY_LACK has this value or, None, is not set."""
        environment = {name: value for name, value in os.environ.items() if name != "PIPEWRIGHT_MAY_LACK"}
        if may_lack is not None:
            environment["PIPEWRIGHT_MAY_LACK"] = may_lack
        done = subprocess.run(
            command, env=environment, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=60,
        )
        return done.returncode, done.stdout

    def module(self, *classes, may_lack=None):
        return self.run_with(may_lack, sys.executable, "-B", "module.py", *classes)

    def test_a_module_has_passed_unless_all_of_it_is_skipped(self):
        for classes, code, line in (
            (["Some"], 0, "Some.test_skips: lacks gpu: there is no CUDA device that LibTorch can use"),
            (["Some.test_skips"], 77, "Some.test_skips: lacks gpu: there is no CUDA device that LibTorch can use"),
            (["All"], 77, "setUpClass (All): lacks slurm: said in its own words"),
            (["Some", "All"], 0, "setUpClass (All): lacks slurm: said in its own words"),
            (["Part"], 0, "plots: lacks gnuplot: there is no gnuplot"),
            (["Subtest"], 0, "Subtest.test_of_two (number=2): lacks pmix: this Slurm has no PMIx"),
            (["Wordless"], 77, "Wordless.test_skips: no reason at all"),
        ):
            with self.subTest(classes):
                exited, said = self.module(*classes)
                self.assertEqual(exited, code, said)
                self.assertEqual(said.count(f"SKIPPED: {line}\n"), 1, said)
        self.assertEqual(self.module("Some.test_passes")[0], 0)

    def test_a_line_tells_what_and_why_and_what_to_do(self):
        self.assertEqual(
            skips.read("SKIPPED: Subtest.test_of_two (number=2): lacks pmix: this Slurm has no PMIx"),
            ("Subtest.test_of_two (number=2)", "this Slurm has no PMIx", skips.THINGS["pmix"][1]),
        )
        self.assertEqual(skips.read("SKIPPED: lacks zsh: none: here"), ("", "none: here", skips.THINGS["zsh"][1]))
        self.assertEqual(skips.read("SKIPPED: Wordless.test_skips: no reason"), ("Wordless.test_skips", "no reason", ""))

    def test_a_failure_is_one_whatever_else_is_skipped(self):
        code, said = self.module("Some", "Wrong")
        self.assertEqual(code, 1, said)
        self.assertIn("SKIPPED: Some.test_skips", said)

    def test_a_module_without_tests_fails(self):
        code, said = self.module("Nothing")
        self.assertNotEqual(code, 0, said)

    def test_a_skip_fails_where_the_thing_should_be(self):
        for classes, thing, code in (("Some", "gpu", 0), ("All", "slurm", 77), ("Part", "gnuplot", 0), ("Subtest", "pmix", 0)):
            with self.subTest(classes):
                self.assertEqual(self.module(classes, may_lack=f"mpirun {thing} clang-format")[0], code)
                for others in ("", "mpirun", f"{thing}s"):
                    code, said = self.module(classes, may_lack=others)
                    self.assertEqual(code, 1, said)
                    self.assertIn(f"FAILED: 1 skipped, though PIPEWRIGHT_MAY_LACK is '{others}'\n", said)
        self.assertEqual(self.module("Some.test_passes", may_lack="")[0], 0)

    def test_a_skip_without_a_word_for_what_is_lacking_fails_wherever_that_matters(self):
        self.assertEqual(self.module("Wordless", may_lack=" ".join(skips.THINGS))[0], 1)

    def test_shell_scripts_skip_likewise(self):
        command = [str(TESTS / "skip"), "clang-format", "none here"]
        for may_lack, code in ((None, 77), ("gpu clang-format", 77), ("", 1), ("gpu", 1), ("clang-format-14", 1)):
            with self.subTest(may_lack):
                exited, said = self.run_with(may_lack, *command)
                self.assertEqual(exited, code)
                self.assertTrue(said.startswith("SKIPPED: lacks clang-format: none here\n"), said)

    @skips.needs("test-programs", SKIPPING_TESTS)
    def test_tests_in_cpp_skip_likewise(self):
        no_gpu, wordless = "--gtest_filter=*WhereThereIsNoGpu:*Passes", "--gtest_filter=*WithoutAWordForIt"
        for chosen, may_lack, code in (
            (no_gpu, None, 0), (no_gpu, "slurm gpu", 0), (no_gpu, "", 1), (no_gpu, "slurm", 1),
            (wordless, None, 0), (wordless, "gpu", 1),
        ):
            with self.subTest(chosen=chosen, may_lack=may_lack):
                exited, said = self.run_with(may_lack, SKIPPING_TESTS, chosen)
                self.assertEqual(exited, code, said)
                self.assertEqual(said.count("SKIPPED: Skipping."), 1, said)  # entry.py looks for this

    def test_ctest_counts_them(self):
        tests = {
            "passes": [sys.executable, "-B", "module.py", "Some.test_passes"],
            "some": [sys.executable, "-B", "module.py", "Some"],
            "all": [sys.executable, "-B", "module.py", "All"],
            "shell": [str(TESTS / "skip"), "clang-format", "none here"],
        }
        listed = "".join(
            f"add_test({name} {' '.join(json.dumps(word) for word in command)})\n"
            f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)\n"
            for name, command in tests.items()
        )
        (self.folder / "CTestTestfile.cmake").write_text(listed)
        code, said = self.run_with(None, "ctest")
        self.assertEqual(code, 0, said)
        self.assertEqual(re.findall(r"\d - (\w+) \(Skipped\)", said), ["all", "shell"], said)
        code, said = self.run_with("gpu", "ctest")
        self.assertNotEqual(code, 0, said)
        self.assertIn("50% tests passed, 2 tests failed out of 4", said)
        self.assertEqual(re.findall(r"\d - (\w+) \((\w+)\)", said), [("all", "Failed"), ("shell", "Failed")])


class EveryTest(unittest.TestCase):
    """Nothing gets round it."""

    @skips.needs("test-programs", BUILD)
    def test_of_this_build_skips_with_77(self):
        shown = subprocess.run(
            ["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True, timeout=120
        )
        tests = json.loads(shown.stdout)["tests"]
        self.assertGreater(len(tests), 50)
        for test in filter(lambda each: "command" in each, tests):
            properties = {each["name"]: each["value"] for each in test["properties"]}
            with self.subTest(test["name"]):
                self.assertIn(str(TESTS / "entry.py"), test["command"])  # which measures it, and sees skips in C++
                self.assertEqual(properties.get("SKIP_RETURN_CODE"), 77)
                self.assertNotIn("SKIP_REGULAR_EXPRESSION", properties, "ctest would count a failure with this text as skipped")

    def test_names_what_it_lacks(self):
        """All skips go through ../skips.py, skips.h and skip; and say a word that is listed there."""
        own = {"skips.py", "skip", "skips.h", "skips_test.py", "skipping_tests.cpp", "CMakeLists.txt", "entry.py"}
        past = re.compile(r"GTEST_SKIP|unittest\.skip|SkipTest|skipTest|exit\(?\s*77|SKIP_REGULAR")
        words = re.compile(r"""(?:PIPEWRIGHT_LACKS\(|skips\.needs\(|skips\.lacks\(|tests/skip"? |/\.\./skip" )"?([\w-]+)""")
        parts = re.compile(r"""skips\.left_out\([^()]*?, "([\w-]+)""")
        said = set()
        for path in (*TESTS.rglob("*"), *(TESTS.parent / "python/tests").rglob("*")):
            if path.suffix in {".py", ".cpp", ".h", ".sh", ".txt", ""} and path.is_file() and path.name not in own:
                text = path.read_text(encoding="utf-8", errors="replace")
                self.assertIsNone(past.search(text), f"{path} skips without saying what is lacking")
                said |= set(words.findall(text)) | set(parts.findall(text))
        self.assertEqual(said - {"thing"}, set(skips.THINGS))

    def test_that_a_machine_lacks_is_in_the_words_of_skips(self):
        """What ../setup prints for PIPEWRIGHT_MAY_LACK."""
        text = (TESTS / "setup").read_text()
        said = set(re.findall(r'lacks ([a-z-]+) "', text))
        for packages in re.findall(r"wanted\+?=\((.*)\)", text):
            said |= {each.split()[0] for each in re.findall(r'"([^"]+)"', packages)}
        self.assertGreater(len(said), 15)
        self.assertLessEqual(said, set(skips.THINGS))


if __name__ == "__main__":
    harness.main()
