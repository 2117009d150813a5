# SPDX-License-Identifier: Apache-2.0
"""Intervals, p values and power beside SciPy's, to 1e-10."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
from scipy import optimize, stats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import skips

PROBE = os.environ["PIPEWRIGHT_STATISTICS_PROBE"]
TOLERANCE = 1e-10  # of Boost.Math and SciPy, both good to some 1e-13


def holm(p):
    """Bonferroni's factors from the smallest p on; the adjusted ones never fall."""
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * np.array(p)[order]))
    return adjusted[np.argsort(order, kind="stable")]


def detectable(n):
    t = stats.t.ppf(0.975, n - 1)

    def lacking(effect):
        found = stats.nct(n - 1, effect * np.sqrt(n))
        return found.sf(t) + found.cdf(-t) - 0.8

    return optimize.brentq(lacking, 0.1, 11 / n, xtol=1e-14)  # SciPy's is not a number far beyond


class Statistics(unittest.TestCase):
    def near(self, ours, theirs, what):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, err_msg=what)

    def test_everything(self):
        random = np.random.default_rng(1)
        for n, m in ((3, 3), (5, 3), (5, 5), (8, 10), (12, 12)):
            for spread in (0.1, 1, 30):
                a, b = random.normal(1, 1, n), random.normal(1.3, spread, m)
                p = random.uniform(0, 0.1, 7)
                hits, count, margin = n - 1, n + 1, 0.7
                given = {"a": list(a), "b": list(b), "margin": margin, "p": list(p), "hits": hits, "count": count}
                done = subprocess.run([PROBE], input=json.dumps(given), capture_output=True, text=True, check=True)
                ours = json.loads(done.stdout)
                pairs = min(n, m)
                differences = a[:pairs] - b[:pairs]
                self.one(ours["paired"], stats.ttest_rel(a[:pairs], b[:pairs]), differences.mean(), margin,
                         stats.ttest_1samp(differences, -margin, alternative="greater").pvalue,
                         stats.ttest_1samp(differences, margin, alternative="less").pvalue)
                self.one(ours["welch"], stats.ttest_ind(a, b, equal_var=False), a.mean() - b.mean(), margin,
                         stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue,
                         stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue)
                signs = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
                self.near(ours["signs"], signs.pvalue, "signs")
                self.near(ours["correlation"], stats.pearsonr(a[:pairs], b[:pairs]).statistic, "correlation")
                self.near(ours["holm"], holm(p), "Holm")
                share = stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
                self.near(ours["share"], [share.low, share.high], "share")
                self.near(ours["effect"], detectable(pairs), "effect")

    def one(self, ours, test, mean, margin, above, below):
        self.near(ours["mean"], mean, "mean")
        self.near(ours["degrees"], test.df, "degrees")
        self.near(ours["p"], test.pvalue, "p")
        self.near(ours["equivalence"], max(above, below), f"equivalence within {margin}")
        for interval, confidence in zip(ours["intervals"], (0.9, 0.95)):
            theirs = test.confidence_interval(confidence)
            self.near(interval, [theirs.low, theirs.high], "interval")


if __name__ == "__main__":
    skips.main()
