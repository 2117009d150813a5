# SPDX-License-Identifier: Apache-2.0
"""Pictures of learning curves."""

import os
import xml.etree.ElementTree

import harness
import skips
from harness import DATA, EXPERIMENT, changed
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

        self.plot("--metric", "lr", "--output", "elsewhere", "--set", "plot.pictures=train.seed")
        self.assertEqual(
            sorted(path.name for path in (self.folder / "elsewhere").iterdir()),
            ["lr-seed-1.png", "lr-seed-1.svg", "lr-seed-2.png", "lr-seed-2.svg"],
        )
        self.assert_errors(
            self.plot("--metric", "train_los", code=EXPERIMENT), r"did you mean 'train_loss'\?"
        )

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
