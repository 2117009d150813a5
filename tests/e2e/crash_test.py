# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment, in the middle of a checkpoint too, a run goes on to the same bytes.

`every_resume_test.py` makes each call on a file fail instead.
"""

import random
import signal
import time

import harness
import skips
from harness import CNN, DATA, changed, plain

# Six mini-batches with a checkpoint after each, in which most of the time is spent.
SMALL = changed(
    CNN,
    {
        "pipeline": {"stages": 2, "replicas": 2},
        "scheme": {"name": "pipedream"},
        "optimizer": {"name": "adam", "lr": 0.002},
        "loader.limit_train": 160,
        "train.checkpoint": {"every": 1, "unit": "minibatch"},
    },
)
KILLS = 30


@skips.needs("test-programs", harness.FAILING_FILES)
class Crash(harness.EndToEnd):
    def leg(self, out, kills, moments):
        """Goes on until it is killed: at a random time, or in a random call on a checkpoint's files."""
        in_a_call, call = kills % 2 == 1, moments.randint(1, 60)
        environment = self.failing(f"{out}/checkpoint", "any", call, kill=True) if in_a_call else None
        process = self.start(
            "run", f"{out}.yaml", "--quiet", "--out", out, "--resume", environment=environment
        )
        if not in_a_call:
            time.sleep(moments.uniform(0.2, 0.6))
            process.kill()
        done = self.finish(process)
        self.assertIn(done.code, (0, -signal.SIGKILL), done.err)
        return done.code == 0

    def test_killed_at_thirty_random_moments_it_ends_with_the_same_bytes(self):
        whole = self.train(SMALL, "whole")
        self.write("killed.yaml", SMALL)
        moments, kills, ends = random.Random("thirty kills"), 0, 0
        while kills < KILLS:
            if self.leg("killed", kills, moments):
                self.assert_same_result(whole, harness.Run(self.folder / "killed"))
                ends += 1
                (self.folder / "killed").rename(self.folder / f"ended{ends}")
            else:
                kills += 1
        self.resume("killed", "--quiet")
        self.assert_same_result(whole, harness.Run(self.folder / "killed"))

    def test_whatever_a_run_leaves_is_synced_before_it_has_its_name(self):
        self.write("x.yaml", changed(SMALL, {"loader.limit_train": 64}))
        for file in (
            "checkpoint/manifest.json", "checkpoint/000001/stage-1.safetensors", "checkpoint/000001/metrics.safetensors",
            "checkpoint/steps-000000.csv", "final.safetensors", "run.json", "epochs.csv", "x/steps.csv", "experiment.yaml",
        ):  # fmt: skip
            with self.subTest(file):
                flags = ("--quiet", "--out", "x", "--overwrite")
                done = self.pipewright("run", "x.yaml", *flags, code=DATA, environment=self.failing(file, "fsync", 1))
                self.assert_errors(done, rf"{plain(file)}\S*: cannot sync: No space left on device$")


if __name__ == "__main__":
    harness.main()
