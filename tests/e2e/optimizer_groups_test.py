# SPDX-License-Identifier: Apache-2.0
"""Optimizers by part: with every other option, one group of all parameters has the bytes of its optimizer alone.

Groups go on after an interruption in `resume_test.py`, and under another cut in `checkpoint_test.py`.
`tests/unit/optim/optimizer_groups_test.cpp` has each parameter stepped by its own optimizer, and
`tests/conformance/decoder_test.py` a recipe of several groups beside PyTorch.
"""

import harness
from harness import CNN, EXPERIMENT, changed

BY_PART = {
    "optimizer": {
        "name": "adamw",
        "lr": 0.004,
        "no_decay": ["biases", "norms"],
        "groups": [{"match": ["conv?.weight", "fc.weight"], "name": "muon", "lr": 0.02}, {"match": "*.bias", "lr": 0.002}],
    }
}
# Options that read or change what an optimizer does, with an optimizer each; the rate is a power of 2, so that a
# schedule's factor times the rate is rounded once.
TOGETHER = {
    "spectrain": ({"scheme": {"name": "spectrain"}}, {"name": "sgd", "momentum": 0.9}),
    "spectrain look-ahead": ({"scheme": {"name": "spectrain", "velocity": "lookahead"}}, {"name": "sgd", "momentum": 0.5}),
    "pipeoptim, bfloat16": ({"scheme": {"name": "pipeoptim"}, "train.precision": "bfloat16"}, {"name": "muon"}),
    "predicted decay": (
        {"scheme": {"name": "pipeoptim", "adamw_decay_in_prediction": True}, "pipeline.microbatches": 2},
        {"name": "adamw"},
    ),
    "rates of each step": ({"scheme": {"name": "pipeoptim", "prediction_lr": "each", "velocity": "geometric"}}, {"name": "adam"}),
    "pipemare": ({"scheme": {"name": "pipemare", "annealing": 8, "warmup": 4}}, {"name": "adamw"}),
    "float16": ({"scheme": {"name": "pipedream"}, "train.precision": "float16"}, {"name": "rmsprop"}),
    "clip over all": (
        {"scheme": {"name": "gpipe"}, "gradient_rules": [{"name": "clip", "norm": 0.05, "over": "model"}], "pipeline.recompute": "always"},
        {"name": "soap", "precondition_frequency": 2},
    ),
    "offloaded": (
        {"scheme": {"name": "one_f_one_b"}, "pipeline.microbatches": 4, "pipeline.offload": "always"},
        {"name": "adan"},
    ),
    "split backwards": ({"scheme": {"name": "zb_h1"}, "pipeline.microbatches": 4}, {"name": "lion"}),
    "momenta of stages": ({"scheme": {"name": "pipedream"}}, {"name": "nadamw", "momentum_by_delay": 0.99}),
    "staleness": (
        {"scheme": {"name": "delayed_sgd", "delay": 2}, "gradient_rules": [{"name": "staleness_lr"}, {"name": "error_feedback"}]},
        {"name": "spike_compensation"},
    ),
    "disturbed replicas": (
        {
            "scheme": {"name": "pipedream"},
            "pipeline.stages": 2,
            "pipeline.replicas": 2,
            "pipeline.gradient_compression": {"name": "powersgd", "rank": 1},
            "perturb": {"gradient_delay": 2, "weight_noise": 0.05},
        },
        {"name": "adam"},
    ),
    "auxiliary heads": ({"scheme": {"name": "interlocking", "width": 2}, "probes": [{"name": "weight_gap"}]}, {"name": "muon"}),
    "channels last": ({"scheme": {"name": "pipedream"}, "pipeline.memory_format": "channels_last"}, {"name": "muon"}),
}


class Groups(harness.EndToEnd):
    def test_one_of_all_parameters_has_the_bytes_of_its_optimizer(self):
        schedule = {"lr_schedule": {"name": "cosine", "per": "step"}}
        for title, (changes, optimizer) in TOGETHER.items():
            with self.subTest(title):
                name = title.replace(" ", "_").replace(",", "")
                alone = optimizer | {"lr": 2**-8}
                one, other = (
                    self.train(changed(CNN, schedule | changes | {"optimizer": each}), f"{name}_{kind}")
                    for kind, each in (("alone", alone), ("grouped", {"groups": [{"match": "*"} | alone]}))
                )
                factors = [row | {"lr": float(row["lr"]) * alone["lr"]} for row in other.rows("steps.csv")]
                self.assertEqual([row | {"lr": float(row["lr"])} for row in one.rows("steps.csv")], factors)
                self.assert_same_weights(one, other)

    def test_have_the_bytes_of_their_optimizer_with_what_decoders_have(self):
        """A weight of two stages, a residual stream in a subspace, slices."""
        decoder = {
            "dataset": {"name": "synthetic", "train": 32, "test": 8},
            "loader": {"batch_size": 8},
            "model": {"name": "decoder", "vocabulary": 16, "tokens": 8, "width": 16, "heads": 2, "layers": 3},
            "pipeline": {"stages": 3, "balance": "layers"},
            "train": {"steps": 6},
        }
        alone = {"name": "adamw", "lr": 2**-7}
        for name, changes in {
            "tied": {"model.tie": "same", "scheme": {"name": "pipedream"}},
            "subspace": {"model.subspace": 4, "scheme": {"name": "pipeoptim"}},
            "slices": {"scheme": {"name": "seq1f1b"}, "pipeline.slices": 2, "pipeline.microbatches": 2},
        }.items():
            with self.subTest(name):
                one, other = (
                    self.train(changed(decoder, changes | {"optimizer": each}), f"{name}_{kind}")
                    for kind, each in (("alone", alone), ("grouped", {"groups": [{"match": "*"} | alone]}))
                )
                self.assert_same_weights(one, other)

    def test_every_group_learns_in_its_own_way(self):
        """Another rate of one group changes nothing of the first update of others."""
        short = {"train": {"epochs": 1}, "loader.limit_train": 16, "scheme": {"name": "gpipe"}}
        one = self.train(changed(CNN, BY_PART | short), "one").parameters()
        slower = changed(CNN, BY_PART | short)
        slower["optimizer"]["groups"][0]["lr"] = 0.01
        other = self.train(slower, "other").parameters()
        differ = {name for name in one if one[name] != other[name]}
        self.assertEqual(differ, {name for name in one if name.startswith(("conv", "fc")) and ".bn." not in name and name.endswith("weight")})
        self.assertNotEqual(differ, set(one))

    def test_what_no_group_has_is_refused(self):
        experiment = changed(CNN, BY_PART)
        del experiment["optimizer"]["name"], experiment["optimizer"]["groups"][1]
        for option in ("lr", "no_decay"):
            del experiment["optimizer"][option]
        self.write("some.yaml", experiment)
        self.assert_errors(self.pipewright("check", "some.yaml", code=EXPERIMENT), "optimizer.groups leave out .*expected a group for each")


if __name__ == "__main__":
    harness.main()
