# SPDX-License-Identifier: Apache-2.0
"""What must not matter to a training does not: weights, losses, metrics and probes are the same."""

import json
import random
import re
import struct

import invariance
from invariance import MLP, REORDERED, Invariance, changed, csv_rows, harness, rows_of, safetensors

# Every scheme but data_parallel, which has one stage, and csv_schedule, which has its file's shape; with what it needs.
SYNCHRONOUS = {
    "model_parallel": {},
    "gpipe": {},
    "one_f_one_b": {},
    "seq1f1b": {},
    "interleaved": {},
    "interlocking": {},
    "zb_h1": {},
    "zb_h2": {"pipeline.microbatches": 6},
}
ASYNCHRONOUS = {
    "delayed_sgd": {},
    "features_replay": {},
    "lwp": {},
    "paci": {},
    "pipedream": {},
    "pipedream_2bw": {"pipeline.microbatches": 4},
    "pipemare": {},
    "pipeoptim": {},
    "spectrain": {},
    "xpipe": {},
}
# The last eight place several stages on each worker themselves; the unit test `Executions` compares their executions.
ELSEWHERE = {"data_parallel", "csv_schedule", "amdp", "chimera", "dualpipe", "dualpipe_v", "hanayo", "v_half", "v_min", "zb_v"}
# Of these the values follow from whole mini-batches; gradient_alignment and mismatch look at one part of one.
WHOLE = ["weight_gap", "delay_alignment", "norms"]
SHARPNESS = {"name": "sharpness", "every": 4, "samples": 24, "tolerance": 1e-10}
# Lanczos ends at a relative change below its tolerance, or where it is exact, so two searches find the same to twice that.
PROBED = changed(MLP, {"probes": [{"name": name, "every": 3} for name in WHOLE] + [SHARPNESS]})
SHARPNESS_TOLERANCE = 2e-10


class WithoutStaleness(Invariance):
    def test_parts_and_replicas_do_not_matter(self):
        points = {}
        for scheme, needs in SYNCHRONOUS.items():
            for name, change in {
                "whole": {},
                "2-parts": {"pipeline.microbatches": 12 if needs else 2},
                "3-replicas": {"pipeline.replicas": 2 if needs else 3},
                "both": {"pipeline.microbatches": 6, "pipeline.replicas": 2},
            }.items():
                if needs and name == "both":
                    continue
                points[f"{scheme} {name}"] = {"scheme": {"name": scheme}} | needs | change
        probes = PROBED["probes"] + [{"name": name, "every": 3} for name in ("gradient_alignment", "mismatch")]
        runs = self.sweep(changed(PROBED, {"probes": probes}), points)
        for label, run in runs.items():
            whole = runs[f"{label.split()[0]} whole"]
            self.assert_same_numbers(run, whole, REORDERED + SHARPNESS_TOLERANCE, label)
            self.assert_no_staleness(run, label)

    def assert_no_staleness(self, run, label):
        """The weights that a gradient is computed with are those that it changes."""
        exact = {"forward": 0, "backward": 0, "forward_relative": 0, "backward_relative": 0, "norm_ratio": 1, "cosine": 1}
        seen = set()
        for row in rows_of(run, "probes.csv"):
            if row["probe"] in ("weight_gap", "gradient_alignment", "mismatch") and row["quantity"] in exact:
                seen.add((row["probe"], row["quantity"]))
                self.assertAlmostEqual(float(row["value"]), exact[row["quantity"]], delta=REORDERED, msg=f"{label}: {row}")
        self.assertEqual(len(seen), 8, label)


class EveryScheme(Invariance):
    def test_replicas_workers_and_threads_do_not_matter(self):
        points = {}
        for scheme, needs in (SYNCHRONOUS | ASYNCHRONOUS).items():
            base = {"scheme": {"name": scheme}} | needs
            points[f"{scheme} plain"] = base
            points[f"{scheme} replicas"] = base | {"pipeline.replicas": 2}
            points[f"{scheme} threads"] = base | {"pipeline.execution": "threads"}
            if scheme != "interleaved":  # which places its stages itself
                points[f"{scheme} one-worker"] = base | {"pipeline.placement": [0, 0, 0]}
                points[f"{scheme} two-workers"] = base | {"pipeline.placement": [1, 0, 1]}
        runs = self.sweep(PROBED, points)
        for label, run in runs.items():
            scheme, change = label.split()
            plain = runs[f"{scheme} plain"]
            if change == "replicas":
                self.assert_same_numbers(run, plain, REORDERED + SHARPNESS_TOLERANCE, label)
            else:
                self.assert_same_bits(run, plain, label)
        for scheme in ASYNCHRONOUS:  # so that the above is no comparison of nothing
            gaps = [float(row["value"]) for row in rows_of(runs[f"{scheme} plain"], "probes.csv") if row["probe"] == "weight_gap"]
            self.assertGreater(max(gaps), 0, scheme)

    def test_every_registered_scheme_is_among_these(self):
        listed = {line.split()[0] for line in self.pipewright("list", "schemes").out.splitlines()}
        self.assertEqual(listed, set(SYNCHRONOUS) | set(ASYNCHRONOUS) | ELSEWHERE)


class FromAFile(Invariance):
    """`schedule --csv`, and then `scheme: {name: csv_schedule}` in the same experiment."""

    RULES = {
        "clip": {"norm": 0.05},
        "dc_asgd": {},
        "error_feedback": {"coefficient": 0.5},
        "gap_aware": {},
        "staleness_lr": {},
    }

    def file_of(self, name, experiment):
        """Writes the schedule of an experiment, and returns what the command said."""
        self.write(f"{name}.yaml", experiment)
        return self.pipewright("schedule", f"{name}.yaml", "--minibatches", 48, "--csv", f"{name}.csv").out

    def test_it_is_the_same_training_under_every_gradient_rule(self):
        listed = {line.split()[0] for line in self.pipewright("list", "gradient_rules").out.splitlines()}
        self.assertEqual(listed, set(self.RULES))
        points = {}
        for scheme in ("pipedream", "spectrain", "delayed_sgd"):
            for rule, options in self.RULES.items():
                rules = [{"name": rule} | options]
                label = f"{scheme}-{rule}"
                said = self.file_of(label, changed(MLP, {"scheme": {"name": scheme}, "gradient_rules": rules}))
                self.assertEqual("without the factors of staleness_lr" in said, rule == "staleness_lr", label)
                self.assertNotIn("changes as the training goes on", said)
                points[label] = {"scheme": {"name": scheme}, "gradient_rules": rules}
                file = {"name": "csv_schedule", "file": str(self.folder / f"{label}.csv")}
                points[f"{label} file"] = {"scheme": file, "gradient_rules": rules}
        runs = self.sweep(MLP, points)
        for label in points:
            if not label.endswith(" file"):
                self.assert_same_bits(runs[label], runs[f"{label} file"], label)
        self.assertNotEqual(runs["pipedream-staleness_lr"].bytes(), runs["pipedream-clip"].bytes())

    def test_a_schedule_that_depends_on_the_epoch_is_named(self):
        for scheme in ({"name": "pipemare"}, {"name": "delayed_sgd", "delay": {"law": "uniform", "mean": 1}}):
            said = self.file_of("changing", changed(MLP, {"scheme": scheme}))
            self.assertIn("another training from the second epoch on", said)
            said = self.file_of("changing", changed(MLP, {"scheme": scheme, "train.epochs": 1}))
            self.assertNotIn("another training", said)
            within = {"scheme": scheme, "train.epochs": 1, "train.checkpoint": {"every": 3, "unit": "minibatch"}}
            said = self.file_of("changing", changed(MLP, within))
            self.assertIn("each drain for a checkpoint begins changing.csv anew", said)


class Uneven(Invariance):
    """Mini-batches that no part divides, and a smaller last one."""

    def test_parts_and_replicas_do_not_matter(self):
        base = changed(PROBED, {"loader": {"batch_size": 10, "limit_train": 87, "limit_test": 31, "drop_last": False}})
        points = {}
        for scheme in ("gpipe", "one_f_one_b", "zb_h1", "interlocking", "pipedream", "spectrain", "pipemare"):
            points[f"{scheme} whole"] = {"scheme": {"name": scheme}}
            points[f"{scheme} replicas"] = {"scheme": {"name": scheme}, "pipeline.replicas": 3}
            if scheme in SYNCHRONOUS:
                points[f"{scheme} parts"] = {"scheme": {"name": scheme}, "pipeline.microbatches": 3}
        runs = self.sweep(base, points)
        for label, run in runs.items():
            whole = runs[f"{label.split()[0]} whole"]
            self.assert_same_numbers(run, whole, 2 * REORDERED + SHARPNESS_TOLERANCE, label)  # of twice as many steps


class Evaluation(Invariance):
    """Weights that no update changes, at a learning rate of 0."""

    def test_of_the_same_weights_does_not_depend_on_how_they_are_held_or_fed(self):
        base = changed(
            MLP,
            {
                "scheme": {"name": "gpipe"},
                "loader": {"batch_size": 24, "limit_train": 96, "limit_test": 37, "drop_last": False},
                "optimizer": {"name": "sgd", "lr": 0},
                "train.epochs": 1,
                "probes": [SHARPNESS | {"every": 1, "samples": 40}],
            },
        )
        changes = {
            "plain": {},
            "small": {"loader.batch_size": 7},
            "all": {"loader.batch_size": 96},
            "parts": {"pipeline.microbatches": 3},
            "replicas": {"pipeline.replicas": 2},
            "ordered": {"loader.shuffle": False},
            "adam": {"optimizer": {"name": "adam", "lr": 0}},
            "one-stage": {"pipeline.stages": 1, "pipeline.balance": "layers"},
            "four-stages": {"pipeline.stages": 4, "pipeline.balance": "layers"},
            "late": {"scheme": {"name": "pipedream"}},
        }
        runs = self.sweep(base, changes)
        (plain,) = rows_of(runs["plain"], "epochs.csv")
        sharpest = self.sharpness(runs["plain"])
        for label, run in runs.items():
            (row,) = rows_of(run, "epochs.csv")
            for column in set(row) - invariance.MEASURED:
                self.assert_near(float(row[column]), float(plain[column]), REORDERED, f"{label}: {column}")
            found = self.sharpness(run)
            self.assert_near(found[""], sharpest[""], SHARPNESS_TOLERANCE, label)
            # A stage's Hessian is a block of the whole one, whose largest eigenvalue bounds those of its blocks.
            for stage, largest in found.items():
                self.assertLessEqual(largest, found[""] * (1 + SHARPNESS_TOLERANCE), f"{label}: {stage}")
        one = self.sharpness(runs["one-stage"])
        self.assert_near(one["0"], one[""], SHARPNESS_TOLERANCE, "one stage is the whole model")

    def sharpness(self, run):
        return {row["stage"]: float(row["value"]) for row in rows_of(run, "probes.csv") if row["quantity"] == "largest"}

    def test_of_a_translation_does_not_depend_on_parts_and_replicas(self):
        """Sentences of many lengths, whose padding does not count, and BLEU over all of them."""
        draw = random.Random(3)
        words = {"der": "the", "hund": "dog", "katze": "cat", "haus": "house", "baum": "tree", "rot": "red", "gut": "good"}
        for split, count in (("train", 48), ("test", 13)):
            lines = [draw.choices(list(words), k=draw.randrange(2, 7)) for _ in range(count)]
            self.write(f"data/{split}.de", "".join(" ".join(line) + "\n" for line in lines))
            self.write(f"data/{split}.en", "".join(" ".join(words[word] for word in line) + "\n" for line in lines))
        base = {
            "dataset": {"name": "translation", "root": str(self.folder / "data"), "source": "de", "target": "en", "merges": 50},
            "loader": {"batch_size": 12},
            "model": {"name": "gnmt8", "vocabulary": 120, "width": 12, "tokens": 20, "dropout": 0},
            "pipeline": {"stages": 3},
            "scheme": {"name": "gpipe"},
            "optimizer": {"name": "sgd", "lr": 1.0},
            "train": {"epochs": 2, "precision": "float64", "checkpoint": {"every": 0}},
            "metrics": ["perplexity", "bleu"],
        }
        changes = {"whole": {}, "parts": {"pipeline.microbatches": 4}, "replicas": {"pipeline.replicas": 3}}
        runs = self.sweep(base, changes)
        for label, run in runs.items():
            # Sums of 20 layers in turn over 20 tokens, with at most 12 · 20 terms, at a rate that is 20 times as large.
            self.assert_same_numbers(run, runs["whole"], 100 * REORDERED, label)


class TheFile(Invariance):
    def test_order_of_keys_and_spellings_do_not_matter(self):
        base = changed(PROBED, {"name": "run", "scheme": {"name": "pipedream"}})
        flow = self.train(base, "run")
        turned = self.write("turned/run.yaml", turned_round(base))
        block = self.write(
            "block/run.yaml",
            json.dumps({key: base[key] for key in base if key != "model"}).replace('"lr": 0.05,', '"lr": 5e-2,')[:-1]
            + ', "model": {name: mlp, activation: "tanh", widths: [64, 12,\n 12, 12, 10]}}',
        )
        for file in (turned, block):
            self.pipewright("run", file, "--quiet", "--out", f"{file.parent.name}-run")
            run = harness.Run(self.folder / f"{file.parent.name}-run")
            self.assert_same_bits(run, flow, file.parent.name)
            for key in ("digest", "identity"):
                self.assertEqual(*(json.loads((each.path / "run.json").read_text())[key] for each in (run, flow)), key)

    def test_what_stands_beside_a_training_changes_none_of_its_bits(self):
        base = changed(MLP, {"scheme": {"name": "spectrain"}, "pipeline.microbatches": 2})
        runs = self.sweep(
            base,
            {
                "plain": {},
                "probes": {"probes": PROBED["probes"]},
                "prefetch": {"loader.prefetch": 3},
                "none": {"loader.prefetch": 0},
                "trace": {"output.trace": True},
                "metrics": {"metrics": []},
                "evaluation": {"train.evaluate_every": 2},
                "checkpoints": {"train.checkpoint": {"every": 1}},
            },
        )
        for label, run in runs.items():
            self.assert_same_weights(run, runs["plain"])
            self.assertEqual(run.bytes("steps.csv"), runs["plain"].bytes("steps.csv"), label)


class Samples(Invariance):
    """Samples of an own file, in two orders."""

    def write_samples(self, name, order, test_order):
        draw = random.Random(7)
        points = {split: [[draw.gauss(0, 1) for _ in range(6)] for _ in range(24)] for split in ("train", "test")}
        tensors = {}
        for split, places in (("train", order), ("test", test_order)):
            chosen = [points[split][i] for i in places]
            tensors[f"{split}.x"] = safetensors.Tensor("F32", [24, 6], struct.pack("<144f", *sum(chosen, [])))
            labels = [int(sum(point) > 0) for point in chosen]
            tensors[f"{split}.y"] = safetensors.Tensor("I64", [24], struct.pack("<24q", *labels))
        return self.write(name, safetensors.encoded(tensors))

    def test_their_order_within_a_mini_batch_does_not_matter(self):
        plain, batch = list(range(24)), 8
        turned = [b + (i * 3) % batch for b in range(0, 24, batch) for i in range(batch)]
        mixed = [(i * 7) % 24 for i in range(24)]
        files = {
            "plain": self.write_samples("plain.safetensors", plain, plain),
            "turned": self.write_samples("turned.safetensors", turned, mixed),
        }
        base = changed(
            MLP,
            {
                "loader": {"batch_size": batch, "shuffle": False},
                "model.widths": [6, 8, 8, 8, 2],
                "metrics": ["perplexity", "matthews"],
                "probes": PROBED["probes"],
            },
        )
        points = {
            f"{scheme} {order}": {"scheme": {"name": scheme}, "dataset": {"name": "tensors", "file": str(file)}}
            for scheme in ("gpipe", "pipedream")
            for order, file in files.items()
        }
        runs = self.sweep(base, points)
        for scheme in ("gpipe", "pipedream"):
            self.assert_same_numbers(
                runs[f"{scheme} plain"], runs[f"{scheme} turned"], REORDERED + SHARPNESS_TOLERANCE, scheme
            )


QUADRATIC = {
    "model": {"name": "quadratic", "layers": 4, "width": 2},
    "dataset": {"name": "quadratic", "train": 32, "noise": 0.5},
    "pipeline": {"stages": 4, "microbatches": 4},
    "loader": {"batch_size": 4},
    "scheme": {"name": "delayed_sgd", "delay": 2},
    "optimizer": {"name": "sgd", "lr": 0.25, "momentum": 0.5},
    "train": {"epochs": 2, "precision": "float64", "checkpoint": {"every": 0}},
    "probes": [{"name": name, "every": 3} for name in WHOLE + ["gradient_alignment", "mismatch", "gradient_noise"]]
    + [{"name": "sharpness", "every": 4, "samples": 4}],
}


class Stages(Invariance):
    """A quadratic problem whose layers do not know of each other, with the same delay in all stages."""

    def values(self, run, probes):
        return {
            (row["stage"], row["epoch"], row["minibatch"], row["probe"], row["quantity"]): float(row["value"])
            for row in rows_of(run, "probes.csv")
            if row["probe"] in probes
        }

    def test_equal_stages_are_measured_equal_and_changed_places_change_places(self):
        """Without noise all stages begin at 1 and have the targets 0. In this model the last layer sends every stage its
        gradient, so what a stage's gradient would be with other weights is not the same question everywhere."""
        probes = WHOLE + ["sharpness"]
        few = [probe for probe in QUADRATIC["probes"] if probe["name"] in probes]
        base = changed(QUADRATIC, {"dataset.noise": 0, "probes": few})
        steps = [0.5, 0.25, 0.125, 0.75]
        runs = self.sweep(
            base,
            {
                "equal": {"model.spectrum": [0.5] * 8},
                "steps": {"model.spectrum": [h for h in steps for _ in range(2)]},
                "turned": {"model.spectrum": [h for h in reversed(steps) for _ in range(2)]},
            },
        )
        equal = self.values(runs["equal"], probes)
        self.assertEqual({key[3] for key in equal}, set(probes))
        for (stage, *rest), value in equal.items():
            if stage and rest[2] != "sharpness":
                self.assertEqual(value, equal["0", *rest], (stage, rest))
        steps, turned = (self.values(runs[name], probes) for name in ("steps", "turned"))
        self.assertEqual(len(steps), len(turned))
        for (stage, *rest), value in steps.items():
            place = str(3 - int(stage)) if stage else stage
            # Both searches for an eigenvalue begin elsewhere; its tolerance is 1e-3 of it by default.
            self.assert_near(value, turned[place, *rest], 2e-3 if rest[2] == "sharpness" else REORDERED, (stage, rest))

    def test_curvature_scales_by_powers_of_two_without_a_rounding(self):
        """4 H at lr / 4 has the weights of H at lr, and 4 times the losses, gradients and sharpness."""
        spectrum = [0.5, 0.25, 0.125, 0.75, 0.5, 0.25, 0.125, 0.75]
        runs = self.sweep(
            QUADRATIC,
            {
                "plain": {"model.spectrum": spectrum},
                # H is AᵀA, so A and the targets, which stand beside A·w, are twice as large.
                "steep": {"model.spectrum": [4 * h for h in spectrum], "dataset.noise": 1, "optimizer.lr": 0.25 / 4},
            },
        )
        plain, steep = runs["plain"], runs["steep"]
        self.assert_same_weights(plain, steep)
        self.assertEqual(*([f * float(row["loss"]) for row in rows_of(run, "steps.csv")] for run, f in ((plain, 4), (steep, 1))))
        powers = {("norms", "gradient"): 1, ("sharpness", "largest"): 1, ("gradient_noise", "variance"): 2,
                  ("gradient_noise", "squared_gradient"): 2}  # fmt: skip
        probes = [probe["name"] for probe in QUADRATIC["probes"]]
        theirs = self.values(steep, probes)
        ours = self.values(plain, probes)
        self.assertEqual(list(ours), list(theirs))
        for key, value in ours.items():
            self.assertEqual(4 ** powers.get(key[3:], 0) * value, theirs[key], key)

    def test_a_sum_of_parts_at_a_lower_rate_is_their_mean(self):
        """`gradient: sum` makes a gradient 4 times as long of 4 parts; a quarter of the rate makes the same steps."""
        base = changed(QUADRATIC, {"model.spectrum": [0.5, 0.25] * 4})
        runs = self.sweep(base, {"mean": {}, "sum": {"train.gradient": "sum", "optimizer.lr": 0.25 / 4}})
        self.assert_same_weights(runs["mean"], runs["sum"])
        probes = [probe["name"] for probe in base["probes"]]
        mean, of_sum = (self.values(runs[name], probes) for name in ("mean", "sum"))
        self.assertEqual(list(mean), list(of_sum))
        for key, value in mean.items():
            factor = 4 if key[3:] == ("norms", "gradient") else 1
            self.assertEqual(factor * value, of_sum[key], key)


class Noise(Invariance):
    def test_the_variance_of_a_sample_does_not_depend_on_parts_replicas_or_sums(self):
        """At a learning rate of 0 every mini-batch measures the same distribution. Of estimates of its variance, with
        96 mini-batches each, the means are apart by few standard errors, whatever the parts are."""
        base = changed(
            MLP,
            {
                "pipeline": {"stages": 2},
                "loader": {"batch_size": 12, "limit_train": 1152, "limit_test": 32},
                "optimizer": {"name": "sgd", "lr": 0},
                "train.epochs": 1,
                "probes": [{"name": "gradient_noise", "every": 1}],
            },
        )
        runs = self.sweep(
            base,
            {
                "2-parts": {"pipeline.microbatches": 2},
                "4-parts": {"pipeline.microbatches": 4},
                "12-parts": {"pipeline.microbatches": 12},
                "replicas": {"pipeline.microbatches": 3, "pipeline.replicas": 2},
                "sum": {"pipeline.microbatches": 4, "train.gradient": "sum"},
            },
        )
        samples = {label: self.moments(run) for label, run in runs.items()}
        self.assertEqual(samples["sum"], samples["4-parts"])
        for quantity, (mean, error) in samples["12-parts"].items():
            for label, found in samples.items():
                other, of_other = found[quantity]
                distance = abs(mean - other) / (error**2 + of_other**2) ** 0.5
                self.assertLess(distance, 4, f"{label}, {quantity}: {other} ± {of_other} beside {mean} ± {error}")

    def moments(self, run):
        values = {}
        for row in rows_of(run, "probes.csv"):
            if row["quantity"] in ("variance", "squared_gradient"):
                values.setdefault((row["stage"], row["quantity"]), []).append(float(row["value"]))
        moments = {}
        for key, numbers_of in values.items():
            n = len(numbers_of)
            self.assertEqual(n, 96)
            mean = sum(numbers_of) / n
            moments[key] = mean, (sum((v - mean) ** 2 for v in numbers_of) / (n - 1) / n) ** 0.5
        return moments


class Predictions(Invariance):
    def test_their_error_is_of_the_second_order_in_the_learning_rate(self):
        """What is not predicted is off by the rate times the velocity; a prediction by the change of the velocity, which
        is the rate times as much again. So of half the rate the ratio is half, up to a next order of the rate. Twenty
        mini-batches, all of them the same, have let a velocity with momentum 0.5 settle to 2^-20 of itself."""
        base = changed(
            MLP,
            {
                "scheme": {"name": "spectrain"},
                "loader": {"batch_size": 24, "limit_train": 24, "limit_test": 32, "shuffle": False},
                "train": {"epochs": 24, "drain": "never", "precision": "float64"},
                "optimizer": {"name": "sgd", "momentum": 0.5},
                "probes": [{"name": "prediction_error", "every": 20}],
            },
        )
        rate = 2.0**-9
        runs = self.sweep(base, {"whole": {"optimizer.lr": rate}, "half": {"optimizer.lr": rate / 2}})
        whole, half = (
            [(row["quantity"], float(row["value"])) for row in rows_of(runs[name], "probes.csv") if int(row["epoch"]) >= 20]
            for name in ("whole", "half")
        )
        self.assertEqual([name for name, _ in whole], [name for name, _ in half])
        self.assertTrue(any(name == "forward_ratio" for name, _ in whole))
        for (name, ours), (_, theirs) in zip(whole, half):
            order = {"predicted": 2, "unpredicted": 1, "ratio": 1}[name.split("_")[1]]
            self.assert_near(theirs, ours / 2**order, 20 * rate, name)


class Delays(Invariance):
    """How old weights are is said by `check`, `schedule` and `stability`, and measured by a probe."""

    SCHEMES = {
        "gpipe": {},
        "pipedream": {},
        "vanilla": {"name": "pipedream", "weight_stashing": False},
        "sync": {"name": "pipedream", "vertical_sync": True},
        "pipedream_2bw": {},
        "delayed_sgd": {"delay": [3, 0, 2]},
        "spectrain": {},
        "reused": {"name": "spectrain", "version": 2},
        "pipeoptim": {},
        "xpipe": {},
        "pipemare": {},
    }

    def test_are_the_same_wherever_they_are_said_and_measured(self):
        """In a training that moves at a constant velocity weights that are d updates old are d updates away. All
        mini-batches are the same, and velocities have settled; at this rate they change by 2^-10 in a few updates."""
        base = changed(
            MLP,
            {
                "loader": {"batch_size": 24, "limit_train": 24, "limit_test": 32, "shuffle": False},
                "train": {"epochs": 24, "drain": "never", "precision": "float64"},
                "optimizer.lr": 2.0**-14,
                "probes": [{"name": "weight_gap", "every": 20}],
            },
        )
        points = {
            label: {"scheme": {"name": label} | options, "pipeline.microbatches": 4 if label == "pipedream_2bw" else 1}
            for label, options in self.SCHEMES.items()
        }
        runs = self.sweep(base, points)
        for label, run in runs.items():
            said = self.of_check(label)
            self.assertEqual(said, self.of_stability(label), label)
            self.assertEqual(said, self.of_schedule(label), label)
            if label == "pipemare":  # its rates of stages change, and a drift is no velocity
                continue
            measured = {
                (int(row["stage"]), row["quantity"]): float(row["value"])
                for row in rows_of(run, "probes.csv")
                if int(row["epoch"]) >= 20
            }
            for stage, delays in enumerate(said):
                for kind, delay in zip(("forward", "backward"), delays):
                    found = measured[stage, f"{kind}_relative"]
                    self.assertAlmostEqual(found, abs(delay), delta=2.0**-6, msg=f"{label}, stage {stage}, {kind}")

    def of_check(self, label):
        out = self.pipewright("check", "sweep.yaml", "--point", label).out
        rows = re.findall(r"(?m)^ +\d+  .* (-?\d+) / (-?\d+)  ", out)
        return [(int(forward), int(backward)) for forward, backward in rows]

    def of_schedule(self, label):
        out = self.pipewright("schedule", "sweep.yaml", "--point", label, "--minibatches", 12).out
        rows = re.findall(r"(?m)^(\d+) +\d+ +(-?\d+) +(-?\d+) +\d+ +F ", out)
        return [(int(forward), int(backward)) for _, forward, backward in rows]

    def of_stability(self, label):
        """A version that is d updates old and predicted by s updates is d − s updates old."""
        stages = []
        for row in csv_rows(self.pipewright("stability", "sweep.yaml", "--point", label, "--format", "csv").out):
            ahead = {"forward": 0, "backward": 0}
            for part in row["rule"].split(", "):
                found = re.fullmatch(r"(?:(forward|backward) )?([+-]\d+) \w+", part)
                for kind in ([found[1]] if found[1] else ahead) if found else []:
                    ahead[kind] = int(found[2])
            stages.append(tuple(int(row[f"{kind}_delay"]) - ahead[kind] for kind in ("forward", "backward")))
        return stages


def turned_round(value):
    """The mapping as text with the keys of all of its mappings in the opposite order."""

    def turn(value):
        if isinstance(value, dict):
            return {key: turn(value[key]) for key in reversed(value)}
        return value

    return json.dumps(turn(value))


if __name__ == "__main__":
    invariance.main()
