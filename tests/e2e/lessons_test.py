# SPDX-License-Identifier: Apache-2.0
"""The lessons of examples/lessons do what their comments say: each is a test, done from its first line down.

    # build/pipewright sweep examples/lessons/03_staleness.yaml     the first line is a command; so is a line with three
    #   cat runs/x/probes.csv                                       blanks before one of COMMANDS; "# exit code 7" behind
                                                                    it is its exit code
    #   | PipeDream | 77.89 ± 4.22 (5) | …                          a line that a command above has printed, "…" for
                                                                    anything; "  # text" behind it is a remark

Results of trainings are compared with a tolerance, everything else letter by letter.
"""

import re
import shlex
import subprocess
import unittest

import harness
from harness import FINE, SOURCE_DIR

LESSONS = SOURCE_DIR / "examples/lessons"
COMMANDS = ("build/pipewright", "ls", "cat", "cmp")
# Of a sample standard deviation, which a mean and the deviation itself may differ by. Other processors round otherwise:
# with the plain instructions of ATEN_CPU_CAPABILITY=default, no mean moved by more than a tenth of its deviation.
ROUNDING = 0.5
MEAN = re.compile(r"(\d+\.\d+) ± (\d+\.\d+)")


def files():
    return sorted(LESSONS.glob("*.yaml"))


def commented(text):
    """Its lines of comments, without their marks."""
    return [line.removeprefix("#") for line in text.splitlines() if line.startswith("#")]


def plain(line):
    return " ".join(line.removeprefix("|").split())


def is_expected(printed, expected):
    """Whether a line is the one that a lesson shows, both plain."""
    said, seen = MEAN.findall(expected), MEAN.findall(printed)
    pattern = MEAN.sub(lambda _: "±", expected)
    if not re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), MEAN.sub(lambda _: "±", printed)):
        return False
    return all(
        abs(float(a) - float(b)) <= ROUNDING * float(deviation)
        for (mean, deviation), other in zip(said, seen)
        for a, b in zip((mean, deviation), other)
    )


class LessonTest(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        for name in ("experiments", "examples"):
            (self.folder / name).symlink_to(SOURCE_DIR.resolve() / name)
        self.printed = []

    def do(self, text):
        for number, line in enumerate(commented(text)):
            if line.startswith("   |"):
                self.look_for(re.sub(r" {2,}# .*", "", line.removeprefix("   |")))
            elif number == 0 or line.startswith(tuple(f"   {command} " for command in COMMANDS)):
                code = re.search(r" # exit code (\d+)$", line)
                self.perform(shlex.split(line, comments=True), int(code[1]) if code else FINE)

    def perform(self, words, code):
        command = [harness.BINARY if word == "build/pipewright" else word for word in words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT)
        self.assertEqual(code, done.returncode, f"{shlex.join(words)}\n{done.stdout}{done.stderr}")
        self.printed += [plain(line) for line in (done.stdout + done.stderr).splitlines()]

    def look_for(self, expected):
        if not any(is_expected(line, plain(expected)) for line in self.printed):
            self.fail(f"no command above has printed: {expected}\n" + "\n".join(self.printed))


class Lessons(LessonTest):
    """Has a test for each lesson, made below."""


class Files(unittest.TestCase):
    def test_are_eight_pages_that_begin_with_their_command(self):
        self.assertEqual([f"{number:02}" for number in range(1, 9)], [file.name[:2] for file in files()])
        for file in files():
            lines = file.read_text(encoding="utf-8").splitlines()
            self.assertRegex(lines[0], rf"^# build/pipewright \w+ examples/lessons/{re.escape(file.name)}( |$)")
            self.assertTrue(40 <= len(lines) <= 80, f"{file.name} has {len(lines)} lines")

    def test_lead_to_each_other_and_are_in_the_manual(self):
        page = (SOURCE_DIR / "docs/manual/lessons.md").read_text(encoding="utf-8")
        for file, following in zip(files(), [*files()[1:], None]):
            self.assertIn(f"(../../examples/lessons/{file.name})", page)
            if following:
                self.assertIn(f"# Next: {following.name} ", file.read_text(encoding="utf-8"))

    def test_say_the_verdict_of_each_claim(self):
        count = 0
        for file in files():
            text = file.read_text(encoding="utf-8")
            for claim in re.findall(r"(?m)^  - say: (.*)$", text):
                self.assertRegex(text, rf"(?m)^#   \| - (not )?(held|shown): {re.escape(claim)}\. \(")
                count += 1
        self.assertGreaterEqual(count, 8)


class WrongLessons(LessonTest):
    """A lesson that says something else than the program is found."""

    def wrong(self, text, message):
        with self.assertRaisesRegex(AssertionError, message):
            self.do(text)

    def test_commands_that_end_otherwise(self):
        self.wrong("# build/pipewright check none.yaml\n", "none.yaml")
        self.wrong("# build/pipewright list schemes  # exit code 4\n", "4 != 0")

    def test_lines_that_nobody_prints(self):
        self.wrong("# build/pipewright list optimizers\n#   | signum  …\n", "has printed: +signum")
        self.wrong("# ls examples\n#   | sgd\n#   build/pipewright list optimizers\n", "has printed: +sgd")

    def test_numbers_that_nobody_measures(self):
        table = "| PipeDream | 40.00 ± 6.00 (5) |"
        for near in ("42.90 ± 6.00 (5) |", "37.10 ± 6.00 (5) |", "40.00 ± 8.00 (5) |", "…"):
            self.assertTrue(is_expected(plain(table), plain(f"PipeDream | {near}")), near)
        for far in ("43.10 ± 6.00 (5) |", "40.00 ± 20.00 (5) |", "40.00 ± 6.00 (3) |", "40.00 ± 6.00 (5) | …", "3 failed |"):
            self.assertFalse(is_expected(plain(table), plain(f"PipeDream | {far}")), far)


for each in files():
    setattr(Lessons, f"test_{each.stem}", lambda self, file=each: self.do(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    harness.main()
