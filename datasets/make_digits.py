#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes digits.inc from the test part of "Optical Recognition of Handwritten Digits" (UCI).

usage: make_digits.py CSV > digits.inc     (CSV: optdigits.tes, plain or gzipped)

A line of the CSV is 64 pixels of 0..16, row by row, and the digit. A line of digits.inc is the
same image as text: one letter per pixel, 'a' for 0 to 'q' for 16, then the digit.
"""
import gzip
import sys

HEAD = """\
// 1,797 handwritten digits of 8 x 8 pixels: the test part of "Optical Recognition of Handwritten
// Digits", E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, CC BY 4.0. Pixels are
// unchanged. Made by make_digits.py: a line is an image, 'a'..'q' = pixel 0..16, then its digit.
// clang-format off
"""


def main(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as lines:
        records = [[int(float(n)) for n in line.split(",")] for line in lines]
    assert len(records) == 1797, len(records)
    sys.stdout.write(HEAD)
    for *pixels, digit in records:
        assert len(pixels) == 64 and all(0 <= p <= 16 for p in pixels) and 0 <= digit <= 9
        print('"' + "".join(chr(ord("a") + p) for p in pixels) + str(digit) + '"')


main(sys.argv[1])
