# SPDX-License-Identifier: Apache-2.0
"""Profiles, and cuts that follow from them."""

import json

import harness
from harness import EXPERIMENT, MLP, changed

BY_TIME = changed(MLP, {"pipeline.balance": "time"})


class Balance(harness.EndToEnd):
    def profiles(self):
        return sorted(self.folder.glob("profile-*.yaml"))

    def balance_of(self, run):
        text = (run.path / "experiment.yaml").read_text()
        line = next(line for line in text.splitlines() if line.startswith("  balance: "))
        return json.loads(line.removeprefix("  balance: "))

    def test_a_measured_cut_is_recorded_and_running_it_again_gives_the_same_bits(self):
        run = self.train(BY_TIME, "first")
        self.assertEqual(len(self.profiles()), 1)
        cut = self.balance_of(run)
        self.assertEqual((len(cut), sum(cut)), (2, 4))
        self.pipewright("run", "first/experiment.yaml", "--quiet", "--out", "again")
        self.assert_same_weights(run, harness.Run(self.folder / "again"))

    def test_runs_beside_each_other_share_a_profile(self):
        first = self.train(BY_TIME, "first")
        before = self.profiles()[0].read_bytes()
        second = self.train(changed(BY_TIME, {"train.seed": 2}), "second")
        self.assertEqual(self.profiles()[0].read_bytes(), before)
        self.assertEqual(self.balance_of(first), self.balance_of(second))

    def test_the_runs_of_a_sweep_share_a_profile(self):
        sweep = BY_TIME | {"sweep": {"grid": {"train.seed": [1, 2]}}}
        self.write("sweep.yaml", sweep)
        self.pipewright("sweep", "sweep.yaml", "--out", "all", "--jobs", "2")
        self.assertEqual(len(list((self.folder / "all").glob("profile-*.yaml"))), 1)

    def test_profile_writes_what_a_cut_can_be_made_of(self):
        self.write("x.yaml", BY_TIME)
        shown = self.pipewright("profile", "x.yaml", "--stages", "3", "--workers", "2@1e9").out
        self.assertRegex(shown, r"mlp on cpu, 16 samples in float32, 1 thread")
        self.assertRegex(shown, r"balance: \[\d, \d, \d\]")
        self.assertRegex(shown, r"stage \d \(.*\) limits: ")
        self.assertIn("PipeDream's plan", shown)
        self.pipewright("run", "x.yaml", "--quiet", "--out", "r", "--set", "pipeline.cut.profile=profile.yaml")
        self.assertEqual(self.profiles(), [])

    def test_a_profile_that_does_not_fit_is_refused(self):
        self.write("x.yaml", BY_TIME)
        self.pipewright("profile", "x.yaml", "--repetitions", "1")
        sets = ("--set", "pipeline.cut.profile=profile.yaml", "--set", "loader.batch_size=8")
        refused = self.pipewright("check", "x.yaml", *sets, code=EXPERIMENT)
        self.assert_errors(refused, r"does not fit: it is of micro-batches of 16 samples, .* has 8; make it anew")
        text = (self.folder / "profile.yaml").read_text()
        self.write("profile.yaml", text.replace("samples: 16", "samples: many"))
        refused = self.pipewright("check", "x.yaml", *sets, code=EXPERIMENT)
        self.assert_errors(refused, r"profile\.yaml:\d+:\d+: samples")

    def test_on_the_meta_device_only_bytes_and_operations_are_counted(self):
        self.write("x.yaml", {"model": {"name": "amoebanet_d", "cells": 72, "filters": 512}})
        shown = self.pipewright("profile", "x.yaml", "--device", "meta").out
        self.assertRegex(shown, r"total +[\d.]+ \w +1\.84 G")
        self.assertIn("timed: false", (self.folder / "profile.yaml").read_text())


if __name__ == "__main__":
    harness.main()
