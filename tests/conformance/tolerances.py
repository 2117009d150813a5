"""How near two libraries must come, and why no nearer.

Both sides compute the same sums in the same precision, with other kernels, layouts and orders, so
they differ by rounding: u = 2^-24 in float32, 2^-53 in float64. A sum of n terms in another order
moves by about sqrt(n) u of its size, n ≤ 25,088 in these models (VGG's first linear layer): 150 u.
Errors of L layers in a row add up, as sqrt(L) when they are independent, L ≤ 120 with backward
twice that: another 15. So about 2,000 u at worst, if no layer makes errors larger: 1.2e-4 / 2.2e-13.
Most sums are far shorter, and a norm over many values hides single bad ones, so the limits are set
where a real mistake (an epsilon of 1e-3 for 1e-5, a biased variance, one transposed 1×1 kernel) is
orders of magnitude larger: those move results by 1e-4 and more.
"""

RELATIVE = {"float32": 1e-5, "float64": 1e-10}


def relative_error(ours, theirs):
    """|ours − theirs| / |theirs|, Euclidean norms in float64."""
    return ((ours.double() - theirs.double()).norm() / theirs.double().norm()).item()
