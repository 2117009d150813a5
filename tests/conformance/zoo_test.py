# SPDX-License-Identifier: Apache-2.0
"""Models of different kinds, out of the zoos that zoo.py goes through: each is imported, checked and trained for a step,
and its gradients are PyTorch's.
"""

import tempfile
from pathlib import Path

import graph_training  # noqa: F401
import skips
import torch
import zoo_models
from zoo_training import Trial

CHOSEN = (
    "shufflenet_v2_x0_5", "swin_v2_t", "backbone mobilenet_v3_small", "lraspp_mobilenet_v3_large", "qwen3 ForCausalLM", "mamba ForCausalLM",
    "deberta-v2 ForSequenceClassification", "segformer ForImageClassification", "t5 ForConditionalGeneration", "audio-spectrogram-transformer sound",
)  # fmt: skip


class Zoo(graph_training.GraphTraining):
    pass


def add(name, make):
    def test(self):
        with tempfile.TemporaryDirectory(prefix="pipewright-zoo-") as folder:
            _, operators, far, limit = Trial(Path(folder)).compared(make())
        print(f"{name:40} {operators:5} operators {far:.1e} of {limit:.1e}", flush=True)
        self.assertLessEqual(far, limit)

    setattr(Zoo, f"test_{name.partition(' ')[0].replace('-', '_')}", test)


for each, make in (*zoo_models.from_torchvision(), *zoo_models.from_transformers()):
    if each in CHOSEN:
        add(each, make)

if __name__ == "__main__":
    torch.set_num_threads(1)
    skips.main()
