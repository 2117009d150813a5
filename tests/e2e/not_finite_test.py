# SPDX-License-Identifier: Apache-2.0
"""A loss or weight that is not finite stops the run: exit 6, with stage, mini-batch and version."""

import json

import harness
from harness import MLP, NOT_FINITE, changed

# The rate explodes with epoch 1: mini-batch 0 of it is the last with a finite loss.
LATE = changed(
    MLP, {"train.epochs": 3, "lr_schedule": {"name": "multistep", "milestones": [1], "gamma": 1e30}}
)
STEPS = 6  # of an epoch


class NotFinite(harness.EndToEnd):
    def stopped(self, experiment, *flags):
        self.write("x.yaml", experiment)
        done = self.pipewright(
            "run", "x.yaml", "--quiet", "--out", "out", "--overwrite", *flags, code=NOT_FINITE
        )
        run = harness.Run(self.folder / "out")
        state = json.loads(run.bytes("run.json"))
        self.assertEqual((state["state"], state["error"]), ("failed", done.err.strip()))
        self.assertNotIn("final.safetensors", run.names())
        return run, done

    def test_stage_mini_batch_and_version_are_named(self):
        experiment = changed(MLP, {"scheme": {"name": "pipedream"}, "optimizer.lr": 1e30})
        for execution in ("serial", "threads"):
            _, done = self.stopped(experiment, "--set", f"pipeline.execution={execution}")
            self.assert_errors(
                done,
                r"^worker 1, stage 1, 1F1: .*mini-batch 1 of epoch 0 at stage 1 is (nan|inf|-inf) with version 1",
            )

    def test_the_epochs_before_stay(self):
        run, _ = self.stopped(LATE)
        self.assertEqual(len(run.rows("epochs.csv")), 1)
        self.assertEqual(len(run.rows("steps.csv")), STEPS)

    def test_versions_are_counted_from_the_beginning_of_the_run(self):
        _, done = self.stopped(LATE)
        self.assert_errors(done, rf"mini-batch 1 of epoch 1 at stage 1 .*version {STEPS + 1}\b")

    def test_versions_are_counted_through_without_draining(self):
        _, done = self.stopped(changed(LATE, {"train.drain": "never", "scheme": {"name": "pipedream"}}))
        self.assert_errors(done, rf"mini-batch 1 of epoch 1 at stage 1 .*version {STEPS + 1}\b")

    def test_the_first_loss_is_named_where_every_stage_has_one(self):
        experiment = changed(MLP, {"scheme": {"name": "interlocking", "width": 1}, "optimizer.lr": 1e30})
        _, done = self.stopped(experiment)
        self.assert_errors(
            done, r"^worker (\d), stage \1, \1[FH]1: .*mini-batch 1 of epoch 0 at stage \1 .*version 1"
        )

    def test_a_prediction_is_told(self):
        experiment = changed(
            MLP, {"scheme": {"name": "spectrain"}, "pipeline.stages": 3, "optimizer.lr": 1e30}
        )
        _, done = self.stopped(experiment)
        self.assert_errors(done, r"stage 2 .*version \d+ of the weights, predicted 1 step ahead")

    def test_weights_that_end_not_finite_are_no_result(self):
        """The last update is the first to overflow, so that no loss has seen it."""
        experiment = changed(
            MLP,
            {
                "train.epochs": 1,
                "optimizer.lr": 0.01,
                "lr_schedule": {"name": "multistep", "per": "step", "milestones": [5], "gamma": 1e300},
            },
        )
        _, done = self.stopped(experiment)
        self.assert_errors(done, r"^stage \d+: '.*' is not finite after epoch 0")

    def test_resumed_it_stops_at_the_same_place(self):
        self.stopped(LATE)
        again = self.pipewright("run", "x.yaml", "--quiet", "--out", "out", "--resume", code=NOT_FINITE)
        self.assert_errors(again, r"mini-batch 1 of epoch 1")
        self.pipewright(
            "run", "x.yaml", "--quiet", "--out", "out", "--overwrite", "--set", "lr_schedule.gamma=0.1"
        )


if __name__ == "__main__":
    harness.main()
