# SPDX-License-Identifier: Apache-2.0
"""Values that are each possible and together impossible: exit 2, with the place of one of them."""

import harness
from harness import EXPERIMENT


class Impossible(harness.EndToEnd):
    def refuse(self, text, *patterns):
        self.write("x.yaml", text)
        with self.subTest(text):
            self.assert_errors(self.pipewright("check", "x.yaml", code=EXPERIMENT), *patterns)
            self.assert_errors(self.pipewright("run", "x.yaml", "--out", "out", code=EXPERIMENT), *patterns)
        self.assertFalse((self.folder / "out").exists())

    def test_more_stages_than_layers(self):
        self.refuse(
            "model: {name: mlp}\npipeline: {stages: 5}\n",
            r"^x\.yaml:2:20: pipeline\.stages is 5; the model has 4 layers",
        )

    def test_more_micro_batches_than_samples(self):
        self.refuse(
            "pipeline: {microbatches: 33}\n", r"^x\.yaml:1:26: pipeline\.microbatches is 33; .* 32 samples"
        )
        self.refuse(
            "pipeline: {replicas: 4, microbatches: 9}\n",
            r"^x\.yaml:1:\d+: pipeline\.microbatches is 9; .* 8 samples per replica",
        )
        self.refuse(
            "loader: {batch_size: 2}\npipeline: {replicas: 3}\n",
            r"^x\.yaml:2:22: pipeline\.replicas is 3, .*batch_size",
        )

    def test_a_balance_that_does_not_sum(self):
        self.refuse(
            "pipeline: {stages: 2, balance: [1, 1]}\n",
            r"^x\.yaml:1:32: pipeline\.balance is \[1, 1\], in sum 2 layers; the model has 4",
        )
        self.refuse(
            "pipeline: {stages: 2, balance: [1, 1, 2]}\n",
            r"^x\.yaml:1:32: pipeline\.balance is \[1, 1, 2\], which makes 3 stages; pipeline\.stages is 2",
        )
        self.refuse(
            "pipeline: {stages: 2, balance: [4, 0]}\n", r"^x\.yaml:1:\d+: pipeline\.balance\[1\] is 0; expected"
        )
        self.refuse(
            "pipeline: {balance: fair}\n",
            r"^x\.yaml:1:21: pipeline\.balance is 'fair'; expected layers, parameters",
        )

    def test_a_placement_with_a_gap_or_of_another_length(self):
        self.refuse(
            "pipeline: {stages: 2, placement: [0, 2]}\n",
            r"^x\.yaml:1:34: pipeline\.placement names no stage for worker 1",
        )
        self.refuse(
            "pipeline: {stages: 2, placement: [0]}\n",
            r"^x\.yaml:1:34: pipeline\.placement names the workers of 1 stage; expected one worker for each",
        )

    def test_a_shape_the_scheme_cannot_run_in(self):
        self.refuse(
            "scheme: {name: data_parallel}\npipeline: {stages: 2}\n",
            r"^x\.yaml:2:20: pipeline\.stages is 2; data_parallel has one stage",
        )
        self.refuse(
            "scheme: {name: pipedream_2bw}\npipeline: {stages: 4, microbatches: 3}\n",
            r"^x\.yaml:2:37: pipeline\.microbatches is 3; pipedream_2bw needs at least as many",
        )
        self.refuse(
            "scheme: {name: delayed_sgd, delay: [1, 2]}\npipeline: {stages: 3}\n",
            r"^x\.yaml:1:\d+: scheme\.delay has 2 numbers for 3 stages",
        )
        self.refuse(
            "scheme: {name: interlocking, width: 0}\n", r"^x\.yaml:1:37: scheme\.width is 0; expected"
        )
        self.refuse(
            "optimizer: {name: sgd, nesterov: true}\n",
            r"^x\.yaml:1:34: optimizer\.nesterov is true, which needs a momentum",
        )

    def test_data_and_model_that_do_not_fit(self):
        """Known once the data are open; the place is that of an option which can mend it."""
        self.refuse(
            "model: {name: mlp, widths: [10, 10]}\n",
            r"^x\.yaml:1:\d+: .*takes samples of 10, the data set has 1×8×8",
        )
        self.refuse(
            "model: {name: mlp, widths: [64, 5]}\n", r"^x\.yaml:1:\d+: .*10 classes, the model only 5"
        )

    def test_mini_batches_that_cannot_be_cut(self):
        self.refuse("loader: {batch_size: 2000}\n", r"^x\.yaml:1:\d+: .*no mini-batch: there are 1437 training samples")
        self.refuse(
            "loader: {batch_size: 10, limit_train: 13, drop_last: false}\npipeline: {microbatches: 5}\n",
            r"^x\.yaml:[12]:\d+: .*last mini-batch has 3 samples for 5 micro-batches",
        )
        self.refuse(
            "loader: {validation: 100, limit_train: 100}\n",
            r"^x\.yaml:1:\d+: loader\.validation holds out 100 of 100",
        )

    def test_a_device_that_is_not_there(self):
        self.refuse(
            "pipeline: {device: cuda:9}\n",
            r"^x\.yaml:1:20: pipeline\.device is 'cuda:9'; this machine has \d+ CUDA device",
        )
        self.refuse(
            "pipeline: {stages: 3, device: [cpu, cpu]}\n",
            r"^x\.yaml:1:31: pipeline\.device has 2 devices for 3 workers",
        )
        self.refuse("pipeline: {device: gpu}\n", r"^x\.yaml:1:20: pipeline\.device is 'gpu'; expected cpu, cuda")

    def test_impossible_values_are_told_together_with_all_other_faults(self):
        self.refuse(
            "model: {name: mlp}\npipeline: {stages: 9, microbatches: 64}\noptimizer: {lr: -1}\n",
            r"^x\.yaml:2:20: pipeline\.stages is 9",
            r"^x\.yaml:2:37: pipeline\.microbatches is 64",
            r"^x\.yaml:3:17: optimizer\.lr is -1",
        )
        self.refuse(
            "scheme: {name: data_parallel}\npipeline: {stages: 2, balance: [1, 1]}\ntrain: {epoch: 3}\n",
            r"^x\.yaml:2:20: pipeline\.stages is 2; data_parallel has one stage",
            r"^x\.yaml:2:32: pipeline\.balance is \[1, 1\], in sum 2 layers",
            r"^x\.yaml:3:9: unknown option 'train\.epoch'",
        )


if __name__ == "__main__":
    harness.main()
