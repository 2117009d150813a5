# SPDX-License-Identifier: Apache-2.0
"""What docs/own-module.md says works: its files are written, and its commands are run, as they stand there."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import skips
import torch
from PIL import Image
from safetensors.torch import load_file

SOURCE = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"])
PAGE = (SOURCE / "docs" / "own-module.md").read_text(encoding="utf-8")
COLOURS = {"blue": (40, 60, 200), "green": (50, 190, 60), "red": (210, 50, 40)}
SIZES = ((40, 48), (64, 40), (33, 35), (50, 50))


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return found


def write_photos(folder):
    """Three classes of images of one colour each and some noise."""
    torch.manual_seed(5)
    for part, count in (("train", 12), ("val", 4)):
        for name, colour in COLOURS.items():
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                width, height = SIZES[i % len(SIZES)]
                pixels = (torch.tensor(colour) + 40 * torch.randn(height, width, 3)).clamp(0, 255).to(torch.uint8)
                Image.fromarray(pixels.numpy()).save(folder / part / name / f"{i}.{'jpg' if i % 2 else 'png'}")


class OwnModule(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-own-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "pipewright").symlink_to(os.environ["PIPEWRIGHT_BINARY"])
        (self.folder / "tools").symlink_to(SOURCE / "tools")
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "$@"\n')
        (self.folder / "bin" / "python3").chmod(0o755)

    def do(self, command):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_six_commands_lead_to_a_table_and_back(self):
        (self.folder / "net.py").write_text(block("python"))
        (self.folder / "mine.yaml").write_text(block("yaml"))
        write_photos(self.folder / "photos")
        commands = block("sh").splitlines()
        self.assertEqual(len(commands), 6)
        said = [self.do(command) for command in commands]
        for layer in ("blocks.0", "blocks.3", "head"):
            self.assertIn(layer, said[2])
        for scheme in ("model_parallel", "gpipe", "pipedream", "spectrain"):
            self.assertRegex(said[4], rf"(?m)^\W*{scheme}\W.*\d+\.\d\d ± \d+\.\d\d \(2\)", "a mean of two seeds")
        self.check_weights()

    def check_weights(self):
        """They are loaded strictly, and are those of the run."""
        sys.path.insert(0, str(self.folder))
        import net

        module = net.make_model()
        trained = load_file(self.folder / "trained.safetensors")
        module.load_state_dict(trained)
        self.assertEqual(list(trained), list(module.state_dict()))
        run, _ = sorted(self.folder.glob("runs/mine/pipedream-*"))
        final = load_file(run / "final.safetensors")
        for name, tensor in final.items():
            self.assertTrue(torch.equal(trained[name], tensor), name)
        self.assertEqual(set(trained) - set(final), {name for name in trained if "num_batches" in name})


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
