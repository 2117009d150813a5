# SPDX-License-Identifier: Apache-2.0
"""What docs/manual/howto/own-module.md says works: its files are written, and its commands are run, as they stand there."""

import json
import sys

import skips
import torch
from PIL import Image
from safetensors.torch import load_file
from torch_pages import TorchPage

COLOURS = {"blue": (40, 60, 200), "green": (50, 190, 60), "red": (210, 50, 40)}
SIZES = ((40, 48), (64, 40), (33, 35), (50, 50))


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


class OwnModule(TorchPage):
    def test_six_commands_lead_to_a_table_and_back(self):
        write_photos(self.folder / "photos")
        said = self.do("own-module.md")
        self.assertEqual(len(said), 6)
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
        (run,) = (run for run in self.folder.glob("runs/mine/pipedream-*") if json.loads((run / "run.json").read_text())["seed"] == 1)
        final = load_file(run / "final.safetensors")
        for name, tensor in final.items():
            self.assertTrue(torch.equal(trained[name], tensor), name)
        self.assertEqual(set(trained) - set(final), {name for name in trained if "num_batches" in name})


if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
