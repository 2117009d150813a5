# SPDX-License-Identifier: Apache-2.0
"""Watching a sweep that another process performs."""

import signal

import harness
from harness import EXPERIMENT, INTERRUPTED, MLP, SWEEP, changed

GRID = {"sweep": {"grid": {"optimizer.lr": [0.01, 1e30], "train.seed": [1, 2]}}}
ENDLESS = changed(MLP, {"train.epochs": 1_000_000})


class Watch(harness.EndToEnd):
    def test_a_sweep_that_has_ended_is_told_at_once(self):
        self.write("s.yaml", changed(MLP, GRID))
        self.pipewright("sweep", "s.yaml", "--out", "sw", code=SWEEP)
        seen = self.pipewright("watch", "sw")
        self.assertEqual(seen.out.splitlines()[0], "4 runs: 2 done, 2 failed")
        self.assertRegex(seen.out.splitlines()[1], r"^  1\.0e_30-1: failed, .* loss .* is (nan|-?inf) ")
        self.assertEqual(len(seen.lines), 4)
        self.assertEqual(seen.lines[0], "0.01-1: done")
        self.assertEqual(self.pipewright("watch", next((self.folder / "sw").glob("0.01-1-*"))).out, "1 run: 1 done\n")

    def test_it_waits_for_the_runs_under_way_and_ends_with_them(self):
        self.write("s.yaml", changed(ENDLESS, {"sweep": {"grid": {"train.seed": [1]}}}))
        sweep = self.start("sweep", "s.yaml", "--out", "sw")
        self.wait_until(lambda: any((self.folder / "sw").glob("*/run.json")), sweep)
        watch = self.start("watch", "sw")
        self.assertRegex(watch.stderr.readline(), r"^\S+: running\n")
        sweep.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(sweep).code, INTERRUPTED)
        self.assertEqual(watch.stderr.readline().split(": ")[1][:11], "interrupted")
        self.assertEqual(self.finish(watch).out.splitlines()[0], "1 run: 1 interrupted")

    def test_ctrl_c_ends_it_and_not_the_runs(self):
        self.write("x.yaml", ENDLESS)
        run = self.start("run", "x.yaml", "--out", "r", "--quiet")
        self.wait_until((self.folder / "r/run.json").exists, run)
        watch = self.start("watch", "r")
        watch.stderr.readline()
        watch.send_signal(signal.SIGINT)
        done = self.finish(watch)
        self.assertEqual((done.code, done.err), (INTERRUPTED, "interrupted; the runs go on\n"))
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        self.finish(run)

    def test_a_folder_without_runs_is_refused(self):
        self.assert_errors(self.pipewright("watch", "none", code=EXPERIMENT), r"^none: is no folder; expected that of a sweep")
        (self.folder / "mine").mkdir()
        self.assert_errors(self.pipewright("watch", "mine", code=EXPERIMENT), r"^mine: has no runs, and nobody works there")


if __name__ == "__main__":
    harness.main()
