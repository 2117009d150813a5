# SPDX-License-Identifier: Apache-2.0
"""All executions give the same bytes for a scheme of each kind, and so does every repetition.

The unit tests of the runtime have every scheme with every option in one process: `Executions.*` in threads, and
`Wire.*` as processes that talk through memory.
"""

import json
import pathlib

import harness
import skips
from harness import CNN, changed

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/schedule"
ZBV = GOLDEN / "pytorch_zbv.csv"
DUALPIPEV = GOLDEN / "pytorch_dualpipev.csv"

# Every scheme in the shapes in which it differs from the others.
CASES = {
    "amdp": {
        "scheme": {"name": "amdp"},
        "pipeline.stages": 4,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
    },
    "chimera": {
        "scheme": {"name": "chimera"},
        "pipeline.stages": 4,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
    },
    "csv_schedule": {
        "scheme": {"name": "csv_schedule", "file": str(ZBV)},
        "pipeline.stages": 4,
        "pipeline.microbatches": 4,
    },
    "data_parallel": {"scheme": {"name": "data_parallel"}, "pipeline.stages": 1, "pipeline.replicas": 3},
    "delayed_sgd": {"scheme": {"name": "delayed_sgd", "delay": [3, 1, 2]}},
    "dualpipe": {
        "scheme": {"name": "dualpipe"},
        "pipeline.stages": 4,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 4,
    },
    "dualpipe_v": {"scheme": {"name": "dualpipe_v"}, "pipeline.stages": 4, "pipeline.microbatches": 6},
    "features_replay": {"scheme": {"name": "features_replay"}},
    "gpipe": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 4},
    "hanayo": {"scheme": {"name": "hanayo"}, "pipeline.microbatches": 4},
    "interleaved": {"scheme": {"name": "interleaved"}, "pipeline.microbatches": 4},
    "interlocking": {"scheme": {"name": "interlocking", "width": 2, "combine": "mean"}},
    "lwp": {"scheme": {"name": "lwp", "horizon": 2}},
    "model_parallel": {"scheme": {"name": "model_parallel"}, "pipeline.microbatches": 2},
    "one_f_one_b": {"scheme": {"name": "one_f_one_b"}, "pipeline.microbatches": 4},
    "paci": {"scheme": {"name": "paci"}, "pipeline.microbatches": 2},
    "pipedream": {"scheme": {"name": "pipedream"}},
    "pipedream_2bw": {"scheme": {"name": "pipedream_2bw"}, "pipeline.microbatches": 4},
    "pipemare": {"scheme": {"name": "pipemare", "annealing": 8, "warmup": 4}, "pipeline.microbatches": 2},
    "pipeoptim": {"scheme": {"name": "pipeoptim"}, "optimizer": {"name": "adam"}, "pipeline.microbatches": 2},
    "seq1f1b": {
        "scheme": {"name": "seq1f1b"},
        "pipeline.slices": 4,
        "pipeline.microbatches": 2,
        "dataset": {"name": "synthetic", "train": 96, "test": 32},
        "model": {"name": "gpt", "vocabulary": 16, "tokens": 8, "width": 16, "heads": 2, "layers": 2},
    },
    "spectrain": {"scheme": {"name": "spectrain"}},
    "v_half": {"scheme": {"name": "v_half"}, "pipeline.microbatches": 4},
    "v_min": {"scheme": {"name": "v_min"}, "pipeline.microbatches": 4},
    "xpipe": {"scheme": {"name": "xpipe"}, "pipeline.microbatches": 2, "optimizer": {"name": "adamw"}},
    "zb_h1": {"scheme": {"name": "zb_h1"}, "pipeline.microbatches": 4},
    "zb_h2": {"scheme": {"name": "zb_h2"}, "pipeline.microbatches": 6},
    "zb_v": {"scheme": {"name": "zb_v"}, "pipeline.microbatches": 4},
}
# Defects of published code, in shapes where they change the result.
DEFECTS = {
    "spectrain 1 as coded": {
        "scheme": {"name": "spectrain", "velocity": "lookahead", "prediction_lr": "last"},
        "lr_schedule": {"name": "step", "gamma": 0.25},
    },
    "spectrain 2 as coded": {
        "scheme": {"name": "spectrain", "version": 2, "as_coded": True, "refill": False},
        "optimizer.lr": 0.005,
    },
    "pipedream as coded": {"scheme": {"name": "pipedream", "refill": False}},
    "offloaded": {
        "scheme": {"name": "one_f_one_b"},
        "pipeline.microbatches": 4,
        "pipeline.offload": "always",
        "pipeline.fetch_ahead": 0,
    },
    "torchgpipe": {
        "scheme": {"name": "gpipe"},
        "pipeline.microbatches": 3,
        "pipeline.microbatch_sizes": "torch_chunk",
        "pipeline.recompute": "except_last",
        "pipeline.batch_norm": "per_pass",
    },
}
# Every optimizer, under schemes that predict with it or keep its weights.
OPTIMIZERS = {
    "adam": {"scheme": {"name": "pipedream"}},
    "adamw": {"scheme": {"name": "pipeoptim"}},
    "adan": {"scheme": {"name": "spectrain"}},
    "lion": {"scheme": {"name": "pipeoptim"}},
    "muon": {"scheme": {"name": "spectrain"}},
    "nadamw": {"scheme": {"name": "pipedream"}, "optimizer.momentum_by_delay": 0.99},
    "rmsprop": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2},
    "sgd": {"scheme": {"name": "spectrain"}},
    "spike_compensation": {"scheme": {"name": "pipedream"}},
    "soap": {"scheme": {"name": "xpipe"}, "pipeline.microbatches": 2, "optimizer.precondition_frequency": 2},
}
# Gradient rules, under schemes whose gradients are stale.
RULES = {
    "clip": {
        "scheme": {"name": "gpipe"},
        "pipeline.microbatches": 2,
        "gradient_rules": [{"name": "clip", "norm": 0.05, "over": "model"}],
    },
    "dc_asgd": {"scheme": {"name": "pipeoptim"}, "gradient_rules": [{"name": "dc_asgd", "adaptive": True}]},
    "error_feedback": {
        "scheme": {"name": "spectrain"},
        "train.precision": "bfloat16",
        "gradient_rules": [{"name": "error_feedback"}],
    },
    "gap_aware": {"scheme": {"name": "pipedream"}, "gradient_rules": [{"name": "gap_aware"}]},
    "staleness_lr": {"scheme": {"name": "delayed_sgd", "delay": 2}, "gradient_rules": [{"name": "staleness_lr"}]},
}
# Gradients that wait, weights with noise, statistics that lag behind.
PERTURB = {"gradient_delay": 2, "weight_noise": 0.05, "stale_batch_norm": 3}
DISTURBED = {
    "disturbed gpipe": {"scheme": {"name": "gpipe"}, "pipeline.microbatches": 2, "perturb": PERTURB},
    "disturbed spectrain": {"scheme": {"name": "spectrain"}, "pipeline.stages": 2, "pipeline.replicas": 2, "perturb": PERTURB},
}
# What the unit tests do not have in every execution.
OTHERS = {
    "never drained, with a smaller last mini-batch": {
        "scheme": {"name": "pipeoptim"},
        "optimizer": {"name": "adamw", "lr": 0.001},
        "loader.drop_last": False,
        "loader.limit_train": 90,
        "train.drain": "never",
        "train.precision": "float64",
    },
    "optimizers by part, predicted": {
        "scheme": {"name": "pipeoptim"},
        "train.precision": "bfloat16",
        "optimizer": {"name": "adamw", "lr": 0.004, "groups": [{"match": "*.weight", "name": "muon", "lr": 0.02}]},
    },
    "2 intra-op threads": {"scheme": {"name": "pipeoptim"}, "model.width": 1, "pipeline.threads": 2},
    "a quadratic with discrepancy, gradients summed": {
        "dataset": {"name": "quadratic", "train": 96, "noise": 0.1},
        "model": {"name": "quadratic", "width": 3, "coupled": True, "discrepancy": 0.5},
        "loss": {"name": "output"},
        "scheme": {"name": "pipemare"},
        "pipeline.microbatches": 2,
        "train.gradient": "sum",
        "optimizer.lr": 0.005,
    },
}
# One of each kind: flush, stashed weights, predicted ones, extrapolated ones, split backwards, auxiliary heads.
KINDS = ("gpipe", "pipedream", "spectrain", "pipemare", "zb_h1", "interlocking")
MEASURED = ("seconds", "samples_per_second")


class SameBytes(harness.EndToEnd):
    def check(self, title, experiment, executions):
        """An execution that is named twice is repeated."""
        with self.subTest(title):
            name = title.replace(" ", "_").replace(",", "")
            serial = self.train(experiment, f"{name}_serial")
            for number, execution in enumerate(executions):
                run = self.train(experiment, f"{name}_{number}", "--set", f"pipeline.execution={execution}")
                self.assert_same_weights(serial, run)
                self.assertEqual(serial.bytes("steps.csv"), run.bytes("steps.csv"))
                self.assertEqual(*(self.unmeasured(each.rows("epochs.csv")) for each in (serial, run)))

    def unmeasured(self, rows):
        return [{key: row[key] for key in row if key not in MEASURED} for row in rows]


class Executions(SameBytes):
    def test_all_executions_agree_for_a_scheme_of_each_kind(self):
        for name in KINDS:
            self.check(name, changed(CNN, CASES[name]), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_on_pytorchs_overlapped_passes(self):
        """A training performs them in turn, as of the scheme that has the same order."""
        shape = {"pipeline.stages": 4, "pipeline.microbatches": 4}
        self.assertIn("OVERLAP_F_B", DUALPIPEV.read_text())
        of_file = changed(CNN, {"scheme": {"name": "csv_schedule", "file": str(DUALPIPEV)}, **shape})
        self.check("overlapped", of_file, skips.with_mpi(["threads"], "executions"))
        of_scheme = changed(CNN, {"scheme": {"name": "dualpipe_v"}, **shape})
        self.assert_same_weights(self.train(of_file, "of_file"), self.train(of_scheme, "of_scheme"))

    def test_all_executions_agree_on_defects_of_published_code(self):
        for title, changes in DEFECTS.items():
            self.check(title, changed(CNN, changes), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_on_other_shapes(self):
        for title, changes in OTHERS.items():
            self.check(title, changed(CNN, changes), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_on_disturbed_trainings(self):
        for title, changes in DISTURBED.items():
            self.check(title, changed(CNN, changes), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_for_every_optimizer(self):
        for name, changes in OPTIMIZERS.items():
            experiment = changed(CNN, {"optimizer": {"name": name, "lr": 0.01}})
            self.check(f"optimizer {name}", changed(experiment, changes), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_for_every_gradient_rule(self):
        for name, changes in RULES.items():
            self.check(f"rule {name}", changed(CNN, changes), skips.with_mpi(["threads"], "executions"))

    def test_all_executions_agree_in_faster_numerics(self):
        rounded = changed(CNN, CASES["pipedream"] | {"train.numerics": "fast"})
        self.check("fast", rounded, skips.with_mpi(["threads"], "executions"))
        records = {}
        for numerics in (None, "repeatable", "fast", {"matmul": "tf32", "order": "fixed"}):
            experiment = changed(CNN, {"train.numerics": numerics} if numerics else {})
            run = self.train(experiment, f"run{len(records)}")
            records[str(numerics)] = json.loads(run.bytes("run.json"))
        found = {name: record["numerics"] for name, record in records.items()}
        exact, narrow = {"matmul": "ieee", "convolution": "ieee"}, {"matmul": "bf16", "convolution": "bf16"}
        self.assertEqual(list(found.values()), [exact, exact, narrow, narrow | {"convolution": "ieee"}])
        digests = [record["digest"] for record in records.values()]
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(len(set(digests)), 3)

    def test_no_gradient_rule_is_forgotten_here(self):
        listed = [line.split()[0] for line in self.pipewright("list", "gradient_rules").out.splitlines()]
        self.assertEqual(sorted(RULES), sorted(listed))

    def test_no_optimizer_is_forgotten_here(self):
        listed = [line.split()[0] for line in self.pipewright("list", "optimizers").out.splitlines()]
        self.assertEqual(sorted(OPTIMIZERS), sorted(listed))

    def test_no_scheme_is_forgotten_here(self):
        listed = [line.split()[0] for line in self.pipewright("list", "schemes").out.splitlines()]
        self.assertEqual(sorted(CASES), sorted(listed))

    def test_a_serial_run_repeats_itself(self):
        experiment = changed(CNN, CASES["spectrain"])
        self.assert_same_weights(self.train(experiment, "one"), self.train(experiment, "two"))

    def test_another_seed_is_another_run(self):
        one, two = (self.train(CNN, f"seed{seed}", "--set", f"train.seed={seed}") for seed in (1, 2))
        self.assertFalse(one.bytes() == two.bytes())


if __name__ == "__main__":
    harness.main()
