# SPDX-License-Identifier: Apache-2.0
"""Interrupted at random moments and resumed, a run ends with the same bytes as never interrupted.

This has a scheme of each kind; `every_resume_test.py` has the other cases.
"""

import json
import random
import signal
import time

import harness
import safetensors
from harness import CNN, EXPERIMENT, INTERRUPTED, changed

EPOCHS, STEPS = 12, 20  # about a second; steps of an epoch
LONG = changed(
    CNN,
    {
        "loader": {"batch_size": 16, "limit_train": 320, "limit_test": 32},
        "train": {"epochs": EPOCHS},
        "lr_schedule": {"name": "poly", "per": "step"},
    },
)
CASES = {
    "sgd": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2},
    "within": {"scheme": {"name": "xpipe"}, "train.checkpoint": {"every": 7, "unit": "minibatch"}},
    "adam": {"scheme": {"name": "pipedream"}, "optimizer": {"name": "adam", "lr": 0.002}},
    "predicting": {"scheme": {"name": "spectrain", "velocity": "lookahead"}, "optimizer.nesterov": True},
    "last rates": {
        "scheme": {"name": "spectrain", "velocity": "lookahead", "prediction_lr": "last"},
        "lr_schedule": {"name": "step", "gamma": 0.9},
    },
    "queue": {"scheme": {"name": "pipedream", "refill": False}},
    "queue within": {
        "scheme": {"name": "spectrain", "version": 2, "as_coded": True, "refill": False},
        "optimizer.lr": 0.002,
        "train.checkpoint": {"every": 7, "unit": "minibatch"},
    },
    "by part": {
        "scheme": {"name": "spectrain"},
        "optimizer": {"name": "adamw", "lr": 0.002, "groups": [{"match": "*.weight", "name": "muon", "lr": 0.02}]},
        "train.checkpoint": {"every": 7, "unit": "minibatch"},
    },
    "mixed": {"scheme": {"name": "spectrain"}, "train.precision": "bfloat16"},
    "loss scaling": {"scheme": {"name": "pipedream"}, "train.precision": "float16"},
    "drawn delays": {
        "scheme": {"name": "delayed_sgd", "delay": {"law": "geometric", "mean": 2}},
        "train.checkpoint": {"every": 7, "unit": "minibatch"},
    },
    "drifting": {"scheme": {"name": "pipemare", "annealing": 50, "warmup": 30}},
    "disturbed": {
        "scheme": {"name": "spectrain"},
        "perturb": {"gradient_delay": 5, "weight_noise": 0.02, "stale_batch_norm": 3},
        "train.checkpoint": {"every": 7, "unit": "minibatch"},
    },
    "late and waiting": {
        "scheme": {"name": "pipedream"},
        "gradient_rules": [{"name": "staleness_lr"}],
        "perturb": {"gradient_delay": 5},
        "train.checkpoint": {"every": 3, "unit": "minibatch"},
    },
    "replicas": {
        "scheme": {"name": "pipeoptim"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "optimizer": {"name": "adamw"},
    },
}
# A flush, stashed weights, predicted ones, checkpoints within an epoch, weights of earlier schedules, and gradients that wait.
KINDS = {
    "sgd": "threads",
    "adam": "serial",
    "predicting": "threads",
    "within": "serial",
    "queue": "threads",
    "disturbed": "serial",
}
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
STATES = {signal.SIGINT: "interrupted", signal.SIGTERM: "interrupted", signal.SIGKILL: "running"}
CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: INTERRUPTED, signal.SIGKILL: -signal.SIGKILL}


class Stopped(harness.EndToEnd):
    def wait_for_training(self, process, out):
        """Until this process, not an earlier one, has written that it is running."""
        state = self.folder / out / "run.json"
        old = state.read_bytes() if state.exists() else b""
        self.wait_until(lambda: state.exists() and state.read_bytes() != old, process, may_end=True)

    def leg(self, out, stop, seconds, resume, every=STEPS):
        """Starts or goes on, and is stopped after some seconds. Whether the run has ended by itself."""
        flags = ["--resume"] if resume else []
        process = self.start("run", f"{out}.yaml", "--quiet", "--out", out, *flags)
        self.wait_for_training(process, out)
        time.sleep(seconds)
        process.send_signal(stop)
        done = self.finish(process)
        run = harness.Run(self.folder / out)
        if done.code == 0:
            self.assertEqual(run.state(), "done")
            return True
        self.assertEqual(done.code, CODES[stop], done.err)
        self.assertEqual(run.state(), STATES[stop])
        if stop != signal.SIGKILL:
            manifest = run.path / "checkpoint/manifest.json"
            kept = manifest.exists() and json.loads(manifest.read_text())["minibatches"] > 0
            goes_on = "goes on at the last checkpoint" if kept else "begins anew, because there is no checkpoint"
            self.assert_errors(done, rf"^interrupted; `pipewright run .*--resume` {goes_on}")
        self.assert_whole(run, every)
        return False

    def assert_whole(self, run, every):
        """Whatever stands under a final name is complete."""
        self.assertFalse((run.path / "final.safetensors").exists())
        if (run.path / "checkpoint/manifest.json").exists():
            manifest = json.loads(run.bytes("checkpoint/manifest.json"))
            for file in manifest["files"]:
                safetensors.read(run.path / "checkpoint" / f"{manifest['minibatches']:06}" / file["name"])
        if (run.path / "steps.csv").exists():
            self.assertTrue(run.bytes("steps.csv").endswith(b"\n"))
            self.assertEqual(len(run.rows("steps.csv")) % every, 0)

    def check(self, name, execution):
        experiment = changed(LONG, CASES[name] | {"pipeline.execution": execution})
        every = CASES[name].get("train.checkpoint", {"every": STEPS})["every"]
        whole = self.train(experiment, "whole", "--overwrite")
        moments = random.Random(f"{name} {execution}")
        out = f"{name}_{execution}"
        self.write(f"{out}.yaml", experiment)
        ended, legs = False, 0
        while not ended and legs < 5:
            ended = self.leg(out, SIGNALS[legs % 3], moments.uniform(0.0, 0.2), legs > 0, every)
            legs += 1
        self.assertGreater(legs, 1, "the run was too short to be interrupted")
        if not ended:
            self.pipewright("run", f"{out}.yaml", "--quiet", "--out", out, "--resume")
        run = harness.Run(self.folder / out)
        self.assertEqual(run.state(), "done")
        self.assert_same_weights(whole, run)
        self.assertEqual(whole.bytes("steps.csv"), run.bytes("steps.csv"))
        self.assertEqual(len(run.rows("epochs.csv")), EPOCHS)


class Resume(Stopped):
    def test_any_moment_of_a_scheme_of_each_kind(self):
        for name, execution in KINDS.items():
            with self.subTest(name=name, execution=execution):
                self.check(name, execution)

    def test_it_goes_on_at_the_last_finished_epoch(self):
        self.write("x.yaml", LONG)
        process = self.start("run", "x.yaml", "--quiet", "--out", "x")
        self.wait_until((self.folder / "x" / "epochs.csv").exists, process)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        finished = len(harness.Run(self.folder / "x").rows("epochs.csv"))
        self.assertGreater(finished, 0)
        done = self.pipewright("run", "x.yaml", "--out", "x", "--resume")
        self.assertIn(f"going on after epoch {finished}", done.err)
        self.assertIn(f"epoch {finished + 1}/{EPOCHS}", done.err)
        self.assertNotIn(f"epoch {finished}/{EPOCHS}", done.err)

    def test_rare_checkpoints_and_none_at_all(self):
        whole = self.train(LONG, "whole")
        for title, changes in {
            "rare": {"train.checkpoint.every": 5},
            "none": {"train.checkpoint.every": 0},
        }.items():
            with self.subTest(title):
                self.write(f"{title}.yaml", changed(LONG, changes))
                self.leg(title, signal.SIGKILL, 0.3, resume=False)
                self.pipewright("run", f"{title}.yaml", "--quiet", "--out", title, "--resume")
                run = harness.Run(self.folder / title)
                self.assert_same_weights(whole, run)
                self.assertEqual(whole.bytes("steps.csv"), run.bytes("steps.csv"))

    def test_a_run_that_never_drains_begins_again(self):
        experiment = changed(LONG, {"scheme": {"name": "pipedream"}, "train.drain": "never"})
        whole = self.train(experiment, "whole")
        self.write("x.yaml", experiment)
        self.leg("x", signal.SIGTERM, 0.2, resume=False)
        self.pipewright("run", "x.yaml", "--quiet", "--out", "x", "--resume")
        self.assert_same_weights(whole, harness.Run(self.folder / "x"))

    def interrupted(self):
        """By SIGINT, with two checkpoints at least."""
        self.write("x.yaml", LONG)
        process = self.start("run", "x.yaml", "--quiet", "--out", "x")
        self.wait_until((self.folder / "x/checkpoint/manifest.previous.json").exists, process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, INTERRUPTED)
        return harness.Run(self.folder / "x")

    def test_the_end_of_the_terminal_interrupts_it_but_under_nohup(self):
        self.write("x.yaml", LONG)
        process = self.start("run", "x.yaml", "--quiet", "--out", "x")
        self.wait_for_training(process, "x")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.finish(process).code, INTERRUPTED)
        self.assertEqual(harness.Run(self.folder / "x").state(), "interrupted")
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        process = self.start("run", "x.yaml", "--quiet", "--out", "y")
        self.wait_for_training(process, "y")
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.finish(process).code, 0)

    def test_an_interrupted_folder_is_not_taken_silently(self):
        self.interrupted()
        self.assert_errors(
            self.pipewright("run", "x.yaml", "--out", "x", code=EXPERIMENT), r"^x: .*interrupted.*--resume"
        )

    def test_a_damaged_checkpoint_is_named(self):
        run = self.interrupted()
        for checkpoint in run.path.glob("checkpoint/*/stage-1.safetensors"):  # the last two
            checkpoint.write_bytes(checkpoint.read_bytes()[:-10])
        done = self.pipewright("run", "x.yaml", "--quiet", "--out", "x", "--resume", code=harness.DATA)
        self.assert_errors(done, r"checkpoint/\d+/stage-1\.safetensors: ")
        self.pipewright("run", "x.yaml", "--quiet", "--out", "x", "--overwrite")

    def test_what_a_killed_process_left_half_written_is_cleared_away(self):
        run = self.interrupted()
        for name in ("steps.csv", "final.safetensors", "checkpoint/manifest.json"):
            (run.path / f"{name}.4194301.part").write_text("half")
        self.pipewright("run", "x.yaml", "--quiet", "--out", "x", "--resume")
        self.assertEqual([name for name in run.names() if name.endswith(".part")], [])

    def test_run_json_is_whole_at_every_moment(self):
        self.write("x.yaml", LONG)
        process = self.start("run", "x.yaml", "--quiet", "--out", "x")
        self.wait_for_training(process, "x")
        while process.poll() is None:
            state = json.loads((self.folder / "x/run.json").read_text())["state"]
            self.assertIn(state, ("running", "done"))
            time.sleep(0.005)
        self.assertEqual(self.finish(process).code, 0)


if __name__ == "__main__":
    harness.main()
