# SPDX-License-Identifier: Apache-2.0
"""How near two libraries must come, and why no nearer.

Both compute the same sums in the same precision u (2^-24, 2^-53), perhaps with other kernels and in
another order. That moves a sum of n terms by about sqrt(n) u of its size, and n ≤ 25,088 here (the
first linear layer of VGG-16): 150 u at most. Errors of one layer after another, forward and back,
add up like independent ones, sqrt(200): 2,000 u if every layer were the longest one, 1e-4 and 2e-13.
But nearly all sums have fewer than 2,000 terms, and these errors are norms over whole tensors.
Measured, with the same LibTorch on both sides: 0 for all image models; 4e-7 and 1e-15 for Transformers.
So the limits are a tenth of that worst case in float32, where they must still tell mistakes from
rounding, and with room for batch norms over few values, which enlarge errors, in float64, where
every mistake is far above them: an epsilon of 1.1e-5 for 1e-5 is 3e-5.
"""

import math

RELATIVE = {"float32": 1e-5, "float64": 1e-10}


def relative_error(ours, theirs):
    """|ours − theirs| / |theirs|, Euclidean norms in float64; infinite where something is no number."""
    difference = (ours.double() - theirs.double()).norm().item()
    if difference == 0:
        return 0.0
    size = theirs.double().norm().item()
    return difference / size if size > 0 and math.isfinite(difference) else math.inf
