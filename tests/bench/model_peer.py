# SPDX-License-Identifier: Apache-2.0
"""The plain side of compare_models.py: a model in PyTorch on one thread, trained on one mini-batch that it holds.

  model_peer.py '{"model": {"name": "resnet18", …}, "batch": 16, "loss": {…}}' [bfloat16] [channels_last]

bfloat16: under autocast. channels_last: images and weights of convolutions in that memory format.

Each line on standard input asks for that many steps; the answer is the processor time of the block in seconds.
The same work as a step of Pipewright: forward, loss, backward, SGD with momentum, gradients dropped, the loss read.
"""

import gc
import json
import sys
import time

import torch
from plain_models import MODELS
from torch.nn import functional

TRANSLATORS = {"gnmt8", "gnmt16"}
TOKENS = {"transformer", "residual_lstm", "roberta", "gpt", "decoder"} | TRANSLATORS
LEAST_WORD = 4  # tokens below it are marks and padding


def minibatch(model, batch):
    """Inputs, and targets as the loss wants them."""
    name = model["name"]
    if name in TOKENS:
        words, shape = model["vocabulary"], (batch, model["tokens"])
        inputs = [torch.randint(LEAST_WORD, words, shape) for _ in range(2 if name in TRANSLATORS else 1)]
        if name in TRANSLATORS | {"gpt", "decoder"}:
            return inputs, torch.randint(LEAST_WORD, words, shape)
        return inputs, torch.randint(2, (batch,))
    if name == "unet":
        x = torch.randn(batch, 3, model["size"], model["size"])
        return [x], torch.randint(2, (batch,)).float().view(-1, 1, 1, 1)
    shape = {"mlp": lambda: model["widths"][:1], "encoder": lambda: [model["tokens"], model["width"]]}
    shape = shape.get(name, lambda: [3, model["size"], model["size"]])()
    return [torch.randn(batch, *shape)], torch.randint(10, (batch,))


def loss_function(name="cross_entropy", label_smoothing=0.0, tokens="mean"):
    if name == "binary_cross_entropy":
        return lambda y, t: functional.binary_cross_entropy_with_logits(y, t.expand_as(y))

    def loss(y, t):
        if t.dim() == 1:
            return functional.cross_entropy(y, t, label_smoothing=label_smoothing)
        y, batch = y.flatten(0, 1), len(t)
        if tokens == "sum":
            return functional.cross_entropy(y, t.flatten(), label_smoothing=label_smoothing, reduction="sum") / batch
        return functional.cross_entropy(y, t.flatten(), label_smoothing=label_smoothing)

    return loss


class Peer:
    def __init__(self, case, bfloat16, channels_last):
        options = dict(case["model"])
        self.module = MODELS[options.pop("name")](**options).train()
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=bfloat16)
        # The fastest of its forms on a CPU: foreach goes through every tensor several times.
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-4, momentum=0.9, fused=True)
        self.loss = loss_function(**case.get("loss", {}))
        self.inputs, self.targets = minibatch(case["model"], case["batch"])
        if channels_last:
            self.module.to(memory_format=torch.channels_last)
            self.inputs = [x.to(memory_format=torch.channels_last) for x in self.inputs]

    def step(self):
        with self.autocast:
            loss = self.loss(self.module(*self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()

    def parameters(self):
        return sum(p.numel() for p in self.module.parameters())


def main():
    torch.set_num_threads(1)
    peer = Peer(json.loads(sys.argv[1]), "bfloat16" in sys.argv, "channels_last" in sys.argv)
    print(f"{peer.parameters()} parameters", file=sys.stderr)
    gc.disable()
    for line in sys.stdin:
        begin = time.process_time()
        for _ in range(int(line)):
            peer.step()
        print(time.process_time() - begin, flush=True)


if __name__ == "__main__":
    main()
