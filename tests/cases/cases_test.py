# SPDX-License-Identifier: Apache-2.0
"""The program that runs cases: what it must find, and what --rewrite may touch.

In Pipewright's place stands a shell script, so that nothing here depends on what Pipewright prints.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "cases.py"
HOLDS, DIFFERS, MALFORMED = 0, 1, 2

# `cat FILE…` prints files, `write FILE TEXT` writes one, `fail TEXT` is refused, `crash` ends as by a bug.
STAND_IN = """\
#!/bin/sh
case "$1" in
  cat) shift; cat "$@" ;;
  write) printf '%s\\n' "$3" > "$2" ;;
  results) mkdir -p runs/a; touch runs/a/.pipewright runs/a/epochs.csv; echo "[1/1] a: done (1.5 s)" ;;
  where) pwd; echo "$HOME"; echo "this machine has 23.54 GiB, 57.6 KiB of it in use" ;;
  digest) echo "runs/a-0123456789abcdef" ;;
  open) printf 'no end of line' ;;
  fail) echo "$2" >&2; exit 2 ;;
  crash) echo "a bug" >&2; exit 70 ;;
esac
"""

GOOD = """\
# A file is printed as it is.

=== file a.txt
one
two

=== run pipewright cat a.txt
=== exit 0
=== stdout
one
two
"""


class Cases(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="pipewright-cases-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cases = self.folder / "kind"
        self.cases.mkdir()
        self.binary = self.folder / "stand-in"
        self.binary.write_text(STAND_IN)
        self.binary.chmod(0o755)

    def case(self, text, name="a"):
        path = self.cases / f"{name}.case"
        path.write_text(textwrap.dedent(text))
        return path

    def run_cases(self, *arguments, code):
        places = {"PIPEWRIGHT_BINARY": str(self.binary), "PIPEWRIGHT_SOURCE_DIR": str(self.folder / "source")}
        done = subprocess.run(
            [sys.executable, "-B", PROGRAM, "--root", self.folder, *arguments, self.cases],
            env=os.environ | places,
            text=True,
            capture_output=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def refused(self, text, says):
        """The case is malformed, whether it is run or rewritten, and stays as it is."""
        path = self.case(text)
        before = path.read_bytes()
        for flags in ((), ("--rewrite",)):
            self.assertIn(says, self.run_cases(*flags, code=MALFORMED).stderr)
        self.assertEqual(path.read_bytes(), before)

    def test_what_holds_is_fine(self):
        self.case(GOOD)
        self.assertIn("1 cases, 0 differ, 0 failed", self.run_cases(code=HOLDS).stdout)

    def test_every_expectation_is_compared(self):
        for old, new in (
            ("=== stdout\none\n", "=== stdout\nONE\n"),
            ("=== exit 0", "=== exit 2"),
            ("=== stdout\n", "=== stderr\n"),
            ("=== stdout\none\ntwo\n", "=== stdout\none\n"),
            ("=== stdout\none\ntwo\n", "=== stdout\none\ntwo\n=== leaves\nb.txt\n"),
        ):
            with self.subTest(new):
                self.assertIn(old, GOOD)
                self.case(GOOD.replace(old, new))
                self.assertIn("1 cases, 1 differ", self.run_cases(code=DIFFERS).stdout)

    def test_a_difference_is_shown_and_rewriting_mends_it_and_nothing_else(self):
        other = self.case(GOOD.replace("a.txt", "b.txt"), "b")
        stamp = other.stat().st_mtime_ns
        wrong = GOOD.replace("=== stdout\none", "=== stdout\nONE")
        path = self.case(wrong)
        path.chmod(0o640)
        shown = self.run_cases(code=DIFFERS).stdout
        self.assertIn("\n-ONE\n+one\n two", shown)
        self.assertEqual(path.read_text(), wrong, "running a case must not rewrite it")
        self.assertIn("1 rewritten", self.run_cases("--rewrite", code=HOLDS).stdout)
        self.assertEqual(path.read_text(), GOOD)
        self.assertEqual(path.stat().st_mode & 0o777, 0o640)
        self.assertEqual(other.stat().st_mtime_ns, stamp)
        self.assertEqual(sorted(file.name for file in self.cases.iterdir()), ["a.case", "b.case"])
        self.run_cases(code=HOLDS)

    def test_rewriting_keeps_what_the_author_wrote_to_the_byte(self):
        authored = (
            "# Why it is there,\n# in two lines.\n\n=== file a.txt\n\n  indented \ttab  \n\n\n=== file b.txt\n# b\n\n"
            "=== run pipewright cat a.txt  b.txt\n"
        )
        self.case(authored)
        self.run_cases("--rewrite", code=HOLDS)
        text = (self.cases / "a.case").read_text()
        self.assertTrue(text.startswith(authored + "=== exit 0\n=== stdout\n"), text)
        self.run_cases(code=HOLDS)

    def test_a_new_case_is_filled_in_once_it_is_asked_for(self):
        self.case("# A new file is seen.\n\n=== run pipewright write b.txt hello\n=== shows b.txt\n")
        self.assertIn("no exit code is expected", self.run_cases(code=MALFORMED).stderr)
        self.run_cases("--rewrite", code=HOLDS)
        self.assertIn("=== exit 0\n=== leaves\nb.txt\n=== shows b.txt\nhello\n", (self.cases / "a.case").read_text())
        self.run_cases(code=HOLDS)

    def test_an_empty_expectation_is_an_error(self):
        self.case(GOOD.replace("=== stdout\none\ntwo\n", "=== stdout\n\n"))
        self.assertIn("'stdout' is empty", self.run_cases(code=MALFORMED).stderr)
        self.case(GOOD.replace("=== stdout\none\ntwo\n", ""))
        self.assertIn("nothing but an exit code is expected", self.run_cases(code=MALFORMED).stderr)

    def test_what_is_no_case_is_an_error(self):
        self.refused(GOOD.replace("=== stdout", "=== stdotu"), "a.case:9: unknown section 'stdotu'; known: file, run")
        self.refused(GOOD.replace("# A file", "A file"), "a.case:1: the file must begin with '# '")
        self.refused(GOOD.replace("as it is.", "as it is"), "a.case:1: the file must begin with '# '")
        self.refused("# There is nothing.\n", "there is no command")
        self.refused(GOOD.replace("pipewright cat", "rm -rf"), "'rm -rf a.txt' is no command of pipewright")
        self.refused(GOOD.replace("file a.txt", "file ../a.txt"), "'../a.txt' is no file's name")
        self.refused(GOOD.replace("cat a.txt", "cat b.txt"), "nothing names the file 'a.txt'")
        self.refused(GOOD.replace("=== exit 0", "=== exit 70"), "'70' is no exit code to expect")
        self.refused(GOOD.replace("=== exit 0", "=== exit 0\nso"), "text after an exit code")
        self.refused(GOOD + "=== stdout\none\n", "'stdout' is given twice")
        self.refused(GOOD.replace("=== run", "=== file a.txt\n=== run"), "the file 'a.txt' is given twice")

    def test_two_cases_that_ask_the_same_are_an_error(self):
        self.case(GOOD)
        self.case(GOOD.replace("A file is", "Another reason, and a file is"), "b")
        said = self.run_cases(code=MALFORMED).stderr
        self.assertIn("a.case:1: asks the same as kind/b", said)
        self.assertIn("b.case:1: asks the same as kind/a", said)

    def test_a_folder_without_cases_is_an_error(self):
        self.assertIn("there is no case in this folder", self.run_cases(code=MALFORMED).stderr)

    def test_a_bug_is_never_an_expectation(self):
        path = self.case("# It crashes.\n\n=== run pipewright crash\n")
        said = self.run_cases("--rewrite", code=DIFFERS).stdout
        self.assertIn("ended with 70, which no case may expect\na bug", said)
        self.assertNotIn("exit", path.read_text())

    def test_what_depends_on_the_machine_is_named_and_nothing_else(self):
        places = "=== run pipewright where\n=== run pipewright fail <source>/x=<folder>/y\n"
        self.case(f"# Its folder, and the source.\n\n{places}")
        results = "=== run pipewright results\n=== run pipewright digest\n"
        self.case(f"# Seconds, and a folder of results.\n\n{results}", "b")
        self.run_cases("--rewrite", code=HOLDS)
        first, second = ((self.cases / f"{name}.case").read_text() for name in "ab")
        self.assertIn("<folder>\n<folder>\nthis machine has <memory>, 57.6 KiB of it in use\n", first)
        self.assertIn("=== exit 2\n=== stderr\n<source>/x=<folder>/y\n", first)
        self.assertIn("[1/1] a: done (<seconds> s)\n=== leaves\nruns/a/\n", second)
        self.assertIn("runs/a-<digest>\n", second)

    def test_an_output_without_an_end_of_line_is_another_output(self):
        self.case("# The last line is open.\n\n=== run pipewright open\n")
        self.run_cases("--rewrite", code=HOLDS)
        text = (self.cases / "a.case").read_text()
        self.assertIn("no end of line\n\\ no newline at the end\n", text)
        self.case(text.replace("\\ no newline at the end\n", ""))
        self.run_cases(code=DIFFERS)

    def test_a_file_to_look_at_that_is_not_there_is_a_failure(self):
        self.case("# Nothing is written.\n\n=== run pipewright fail so\n=== shows b.txt\n")
        self.assertIn("there is no file 'b.txt' to look at", self.run_cases("--rewrite", code=DIFFERS).stdout)

    def test_a_trace_is_shown_as_a_timeline(self):
        events = (
            '{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"worker 0"}}',
            '{"name":"F0","tid":0,"ts":0,"ph":"X","dur":1500000}',
            '{"name":"activation","id":0,"ph":"s","tid":0,"ts":1499999}',
            '{"name":"U0","tid":0,"ts":2000000,"ph":"i"}',
        )
        trace = '{"traceEvents":[' + ",".join(events) + "]}"
        self.case(f"# A trace.\n\n=== file t.json\n{trace}\n\n=== run pipewright cat t.json\n=== timeline t.json\n")
        self.run_cases("--rewrite", code=HOLDS)
        expected = "=== timeline t.json\nworker 0\n  0 – 1.5 s  F0\n  2 s  U0\n"
        self.assertTrue((self.cases / "a.case").read_text().endswith(expected))

    def test_files_that_a_command_did_not_touch_are_not_left_by_it(self):
        self.case(
            "# Each command answers for its own files.\n\n=== run pipewright write b.txt one\n"
            "=== run pipewright cat b.txt\n=== run pipewright write b.txt other\n"
        )
        self.run_cases("--rewrite", code=HOLDS)
        text = (self.cases / "a.case").read_text()
        self.assertEqual(text.count("=== leaves\nb.txt\n"), 2, text)
        self.assertIn("cat b.txt\n=== exit 0\n=== stdout\none\n\n", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
