# SPDX-License-Identifier: Apache-2.0
"""Pictures: learning curves, metrics over keys, maps, and what probes measured."""

import json
import os
import xml.etree.ElementTree

import harness
import skips
from harness import DATA, EXPERIMENT, MLP, NOT_FINITE, SWEEP, changed
from sweep_test import MIXED

TWO_SEEDS = changed(
    MIXED,
    {
        "sweep": {
            "points": [{"label": "ours", "scheme": {"name": "model_parallel"}}],
            "grid": {"train.seed": [1, 2]},
        },
        "plot": {"metric": "train_loss", "lines": ["=A & B"]},
    },
)


class Plot(harness.EndToEnd):
    def plot(self, *flags, code=0, **more):
        return self.pipewright("plot", "s.yaml", "--out", "sw", *flags, code=code, **more)

    def texts(self, drawing):
        return " ".join(xml.etree.ElementTree.parse(self.folder / drawing).getroot().itertext())

    def test_without_runs_there_is_nothing_to_draw(self):
        self.write("s.yaml", TWO_SEEDS)
        self.assert_errors(self.plot(code=DATA), r"^sw: no run has an epoch with train_loss yet; .*sweep")

    @skips.needs("gnuplot")
    def test_curves_of_a_sweep(self):
        self.write("s.yaml", TWO_SEEDS)
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2")
        said = self.plot().out.splitlines()
        self.assertEqual(said, [f"wrote sw/plots/train_loss.{kind}" for kind in ("svg", "png")])
        drawing = xml.etree.ElementTree.parse(self.folder / "sw/plots/train_loss.svg")
        texts = "".join(drawing.getroot().itertext())
        self.assertIn("A & B (2 runs)", texts)
        self.assertIn("train_loss", texts)
        self.assertTrue((self.folder / "sw/plots/train_loss.png").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual(list(self.folder.glob("**/*.part")), [])
        self.plot()  # again, over what is there
        mine = self.write("mine.txt", "mine")
        link = self.folder / "sw/plots/train_loss.svg.part"
        link.symlink_to(mine)
        self.plot()
        link.unlink()
        self.assertEqual(mine.read_text(), "mine")

        self.plot("--metric", "lr", "-o", "elsewhere", "--set", "plot.pictures=train.seed")
        self.assertEqual(
            sorted(path.name for path in (self.folder / "elsewhere").iterdir()),
            ["lr-seed-1.png", "lr-seed-1.svg", "lr-seed-2.png", "lr-seed-2.svg"],
        )
        self.assert_errors(
            self.plot("--metric", "train_los", code=EXPERIMENT), r"did you mean 'train_loss'\?"
        )

    @skips.needs("gnuplot")
    def test_a_single_run_of_one_epoch_is_drawn(self):
        for epochs, log in ((1, []), (1, ["y"]), (2, [])):
            self.write("s.yaml", changed(MLP, {"train.epochs": epochs, "plot": {"y": "train_loss", "log": log}}))
            self.pipewright("run", "s.yaml", "--out", "one", "--overwrite", "--quiet")
            self.assertEqual(self.pipewright("plot", "s.yaml", "--out", "one").err, "", "gnuplot has nothing to say")

    @skips.needs("gnuplot")
    def test_a_metric_over_a_key_and_a_map_in_which_diverged_runs_are_marked(self):
        grid = {"optimizer.lr": [0.01, 1e30], "pipeline.stages": [1, 2], "train.seed": [1, 2]}
        section = {"x": "optimizer.lr", "lines": "pipeline.stages", "log": ["x"], "y": "train_loss"}
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": grid}, "plot": section}))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2", code=SWEEP)
        states = [json.loads(file.read_text()) for file in self.folder.glob("sw/*/run.json")]
        self.assertEqual(
            sorted((run["state"], run.get("exit_code")) for run in states), [("done", None)] * 4 + [("failed", NOT_FINITE)] * 4
        )
        self.plot()
        texts = self.texts("sw/plots/train_loss-over-optimizer.lr.svg")
        # GPipe with one micro-batch is the same training in any number of stages.
        for text in ("stages 1 =", "(2 runs per point, 2 of 4 diverged)", "runs diverged", "mean ± sample standard deviation"):
            self.assertIn(text, texts)

        self.write("edge.csv", "lr,stages\n1,1\n10,2\n")
        over = {"file": "edge.csv", "x": "lr", "y": "stages", "label": "the predicted edge"}
        section = {"kind": "map", "x": "optimizer.lr", "y": "pipeline.stages", "color": "train_loss", "log": "x", "over": over}
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": grid}, "plot": section}))
        self.assertEqual(self.plot().err, "", "gnuplot has nothing to say")
        texts = self.texts("sw/plots/train_loss-over-optimizer.lr-and-pipeline.stages.svg")
        for text in ("all runs diverged", "the predicted edge", "1e+30"):
            self.assertIn(text, texts)
        self.assertNotIn("some runs diverged", texts)

    @skips.needs("gnuplot")
    def test_without_a_section_stages_are_x_schemes_lines_and_other_keys_pictures(self):
        grid = {
            "scheme.name": ["model_parallel", "gpipe", "pipedream"],
            "pipeline.stages": [1, 2],
            "optimizer.lr": [0.01, 0.1],
            "train.seed": [1, 2],
        }
        self.write("s.yaml", changed(MLP, {"sweep": {"grid": grid}, "train.precision": "float64"}))
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2")
        said = self.plot("--metric", "train_loss")
        stem = "sw/plots/train_loss-over-pipeline.stages-lr"
        self.assertEqual(said.out.splitlines()[::2], [f"wrote {stem}-{lr}.svg" for lr in ("0.01", "0.1")])
        self.assertEqual(said.err, "", "gnuplot has nothing to say, and no mean mixes settings")
        texts = self.texts(f"{stem}-0.1.svg")
        # GPipe with one micro-batch computes what model parallelism does; PipeDream does not, with two stages.
        for text in ("(2 runs per point)", "pipedream (2 runs per point)", "pipeline.stages"):
            self.assertIn(text, texts)
        table = self.pipewright("table", "s.yaml", "--out", "sw", "--metric", "train_loss").out
        self.assertRegex(table, r"\| optimizer.lr +\| scheme.name +\| +stages 1 \|")

    @skips.needs("gnuplot")
    def test_a_probe_over_mini_batches_and_stages(self):
        section = {"x": "minibatch", "y": "probe.weight_gap.update", "lines": "stage"}
        plain = changed(MLP, {"train.epochs": 2, "plot": section})
        self.write("s.yaml", plain)
        self.pipewright("run", "s.yaml", "--out", "sw", "--quiet")
        self.assert_errors(self.plot(code=EXPERIMENT), r"^s.yaml:\d+:\d+: plot.y: no run has a metric .*no probes.csv")
        self.write("s.yaml", changed(plain, {"probes": [{"name": "weight_gap", "every": 3}]}))
        self.pipewright("run", "s.yaml", "--out", "sw", "--quiet", "--overwrite")
        self.plot()
        texts = self.texts("sw/plots/probe.weight_gap.update-over-minibatch.svg")
        for text in ("stage 0", "stage 1", "minibatch"):
            self.assertIn(text, texts)
        self.plot("--set", "plot.x=stage", "--set", "plot.lines=scheme.name")
        self.assertIn("model_parallel", self.texts("sw/plots/probe.weight_gap.update-over-stage.svg"))
        self.assert_errors(
            self.plot("--metric", "probe.weight_gap.updat", code=EXPERIMENT),
            r"did you mean 'probe.weight_gap.update'\? Measured are .*probe.weight_gap.update",
        )
        (self.folder / "sw/steps.csv").unlink()
        self.assert_errors(self.plot(code=DATA), r"^sw/steps.csv: is not there; plot with x: minibatch")

    def test_without_gnuplot_it_is_said(self):
        self.write("s.yaml", TWO_SEEDS)
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", "2")
        os.mkdir(self.folder / "empty")
        (self.folder / "empty/sh").symlink_to("/bin/sh")
        self.assert_errors(
            self.plot(code=EXPERIMENT, environment={"PATH": str(self.folder / "empty")}), r"gnuplot, which is not installed"
        )


if __name__ == "__main__":
    harness.main()
