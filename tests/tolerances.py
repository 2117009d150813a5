# SPDX-License-Identifier: Apache-2.0
"""All numerical tolerances of the Python tests, each with its derivation, as unit/tolerances.h has those of
the unit tests. Values that must be equal to the bit are compared with assertEqual and are not listed here.
"""

import math

# ---- Rounding ----

UNIT = 2.0**-53  # the result of a float64 operation that rounds to nearest is off by at most this part of itself


def rounded(operations):
    """γ(n) = n·u / (1 − n·u): what n rounded operations can be off by, as a part of the result; a sum of n + 1
    terms, in any order, as a part of the sum of their magnitudes (Higham, Accuracy and Stability of Numerical
    Algorithms, lemma 3.1, section 4.2)."""
    return operations * UNIT / (1 - operations * UNIT)


def significant(number, digits):
    """A number that is written with so many significant digits is off by half a unit of the last one at most; 1.00…
    is the worst case."""
    return 0.5 * 10.0 ** (1 - digits) * abs(number)


TABLE_DIGITS = 12  # significant digits of a number in a table's CSV


def mean_of(values):
    """Of two means of the same numbers: each is a sum of n terms and a division."""
    return 2 * rounded(len(values)) * sum(map(abs, values)) / len(values)


def deviation_of(values):
    """Of two standard deviations of the same numbers above zero, each by way of its mean. A mean that is off by e moves
    every difference from it by e, and the root of their squares' sum by n − 1 by e·√(n / (n − 1)), which is at most
    e·√2. Differences, squares, sum, division and root are n + 4 operations, on a deviation of √2 times the largest
    value at most."""
    return 2 * math.sqrt(2) * (rounded(len(values)) + rounded(len(values) + 4)) * max(values)


# ---- Two libraries that compute the same model ----
#
# Both compute the same sums in the same precision u (2^-24, 2^-53), perhaps with other kernels and in
# another order. That moves a sum of n terms by about sqrt(n) u of its size, and n ≤ 25,088 here (the
# first linear layer of VGG-16): 150 u at most. Errors of one layer after another, forward and back,
# add up like independent ones, sqrt(200): 2,000 u if every layer were the longest one, 1e-4 and 2e-13.
# But nearly all sums have fewer than 2,000 terms, and these errors are norms over whole tensors.
# Measured, with the same LibTorch on both sides: 0 for all image models; 4e-7 and 1e-15 for Transformers.
# So the limits are a tenth of that worst case in float32, where they must still tell mistakes from
# rounding, and with room for batch norms over few values, which enlarge errors, in float64, where
# every mistake is far above them: an epsilon of 1.1e-5 for 1e-5 is 3e-5.

RELATIVE = {"float32": 1e-5, "float64": 1e-10}


def relative_error(ours, theirs):
    """|ours − theirs| / |theirs|, Euclidean norms in float64; infinite where something is no number."""
    difference = (ours.double() - theirs.double()).norm().item()
    if difference == 0:
        return 0.0
    size = theirs.double().norm().item()
    return difference / size if size > 0 and math.isfinite(difference) else math.inf
