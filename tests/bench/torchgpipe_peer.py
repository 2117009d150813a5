# SPDX-License-Identifier: Apache-2.0
"""torchgpipe on one CPU, trained on request; started by compare_torchgpipe.py.

Every line on standard input asks for some steps, as JSON; the answer is the seconds of each block.
The same work as a step of Pipewright: forward, loss, backward, SGD with momentum, gradients dropped, the loss read.
"""

import argparse
import json
import sys
import time

import torch
from pipelining_peer import encoder, mlp, vgg16
from torch import nn
from torchgpipe import GPipe


class Block(nn.Module):
    """Of ResNet-18: two convolutions and what goes past them."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.past = nn.Identity()
        if stride != 1 or channels != out:
            self.past = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out),
        )

    def forward(self, x):
        return torch.relu_(self.body(x) + self.past(x))


def resnet18(**_):
    layers = [nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))]
    channels = 64
    for out, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        layers += [Block(channels, out, stride), Block(out, out, 1)]
        channels = out
    return [*layers, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))], (3, 32, 32), 10


MODELS = {"mlp": mlp, "vgg16": vgg16, "encoder": encoder, "resnet18": resnet18}


class Peer:
    def __init__(self, case, balance, microbatches):
        options = dict(case["model"])
        layers, input_shape, classes = MODELS[options.pop("name")](**options)
        self.model = GPipe(
            nn.Sequential(*layers), balance, devices=["cpu"] * len(balance), chunks=microbatches, checkpoint="never"
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        self.x = torch.randn(case["batch"], *input_shape)
        self.y = torch.randint(classes, (case["batch"],))

    def step(self):
        loss = nn.functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def timed(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, help="JSON: model, batch")
    parser.add_argument("--balance", required=True, type=json.loads)
    parser.add_argument("--microbatches", required=True, type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    peer = Peer(json.loads(arguments.case), arguments.balance, arguments.microbatches)
    for line in sys.stdin:
        wanted = json.loads(line)
        peer.timed(wanted["warm_up"])
        print(json.dumps([peer.timed(wanted["steps"]) for _ in range(wanted["blocks"])]), flush=True)


if __name__ == "__main__":
    main()
