# SPDX-License-Identifier: Apache-2.0
"""Every test that README.md's table of torchgpipe's points names is there."""

import pathlib
import re
import unittest

import skips

HERE = pathlib.Path(__file__).parent
DECLARED = re.compile(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")


class Points(unittest.TestCase):
    def setUp(self):
        self.lines = re.findall(r"(?m)^\| (C\d\d) \|.*\| (.*) \|$", (HERE / "README.md").read_text(encoding="utf-8"))

    def test_all_eighty_are_answered(self):
        self.assertEqual([name for name, _ in self.lines], [f"C{n:02}" for n in range(1, 81)])

    def test_the_tests_that_are_named_exist(self):
        sources = [path.read_text(encoding="utf-8") for path in (HERE.parent / "unit").rglob("*_test.cpp")]
        sources += [path.read_text(encoding="utf-8") for path in (HERE.parent / "oracle").glob("*_test.cpp")]
        declared = {".".join(names) for source in sources for names in DECLARED.findall(source)}
        for point, answer in self.lines:
            for name in re.findall(r"`([A-Z]\w+\.\w+)`", answer):
                with self.subTest(point):
                    self.assertIn(name, declared)

    def test_what_has_no_test_says_why(self):
        for point, answer in self.lines:
            with self.subTest(point):
                self.assertRegex(answer, r"`[A-Z]\w+\.\w+`|`test_\w+`|does not apply[,:]|no output is merged")


if __name__ == "__main__":
    skips.main()
