# SPDX-License-Identifier: Apache-2.0
"""One process of torch.distributed.pipelining (Gloo, CPU): a stage, trained on request.

Started once per stage by compare_pipelining.py. Every line on standard input asks for some steps, as JSON; process 0
answers with seconds.
The same work as a step of Pipewright: forward, loss, backward, SGD with momentum, gradients dropped, the loss read.
"""

import argparse
import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

SCHEDULES = {"gpipe": ScheduleGPipe, "one_f_one_b": Schedule1F1B}
VGG16 = [64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool", 512, 512, 512, "pool", 512, 512, 512, "pool"]


def mlp(widths, **_):
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU(inplace=True)) for a, b in zip(widths, widths[1:], strict=False)]
    layers[-1] = layers[-1][0]
    return layers, (widths[0],), widths[-1]


def vgg16(**_):
    layers, channels = [], 3
    for out in VGG16:
        if out == "pool":
            layers[-1].append(nn.MaxPool2d(2))
            continue
        convolution = nn.Conv2d(channels, out, 3, padding=1)
        layers.append(nn.Sequential(convolution, nn.BatchNorm2d(out), nn.ReLU(inplace=True)))
        channels = out
    layers.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)))
    return layers, (3, 32, 32), 10


class MeanOverTokens(nn.Module):
    def forward(self, x):
        return x.mean(1)


def encoder(layers, width, heads, feed_forward, tokens, dropout, **_):
    blocks = [nn.TransformerEncoderLayer(width, heads, feed_forward, dropout, batch_first=True) for _ in range(layers)]
    return [*blocks, nn.Sequential(MeanOverTokens(), nn.Linear(width, 10))], (tokens, width), 10


class Peer:
    def __init__(self, case):
        self.rank, self.stages, self.batch = dist.get_rank(), dist.get_world_size(), case["batch"]
        options = dict(case["model"])
        make = {"mlp": mlp, "vgg16": vgg16, "encoder": encoder}[options.pop("name")]
        with torch.device("meta"):
            described, self.input_shape, self.classes = make(**options)
        layers, _, _ = make(**options)
        starts = [sum(case["balance"][:k]) for k in range(self.stages + 1)]
        self.described = [nn.Sequential(*described[a:b]) for a, b in zip(starts, starts[1:], strict=False)]
        self.module = nn.Sequential(*layers[starts[self.rank] : starts[self.rank + 1]])
        # The fastest of its forms on a CPU: 3.3 ms for the MLP's parameters, foreach 5.0.
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=1e-3, momentum=0.9, fused=True)
        self.x = torch.randn(self.batch, *self.input_shape)
        self.y = torch.randint(self.classes, (self.batch,))

    def schedule(self, name, microbatches):
        """With the shapes worked out beforehand, so that none are asked for at run time."""
        shapes = [torch.empty(self.batch // microbatches, *self.input_shape, device="meta")]
        for stage in self.described:
            shapes.append(stage(shapes[-1]).detach())
        stage = PipelineStage(
            self.module, self.rank, self.stages, torch.device("cpu"),
            input_args=shapes[self.rank], output_args=shapes[self.rank + 1],
        )
        return SCHEDULES[name](stage, n_microbatches=microbatches, loss_fn=nn.functional.cross_entropy)

    def step(self, schedule):
        if self.rank + 1 == self.stages:
            losses = []
            inputs = (self.x,) if self.rank == 0 else ()
            schedule.step(*inputs, target=self.y, losses=losses, return_outputs=False)
            torch.stack(losses).mean().item()
        elif self.rank == 0:
            schedule.step(self.x, return_outputs=False)
        else:
            schedule.step(return_outputs=False)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def timed(self, schedule, steps):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step(schedule)
        dist.barrier()
        return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", required=True, help="JSON: model, balance, batch")
    parser.add_argument("--rank", required=True, type=int)
    parser.add_argument("--store", required=True, help="a file all stages name, made by the first")
    arguments = parser.parse_args()
    case = json.loads(arguments.case)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{arguments.store}", rank=arguments.rank, world_size=len(case["balance"])
    )
    peer, schedules = Peer(case), {}
    for line in sys.stdin:
        wanted = json.loads(line)
        key = (wanted["schedule"], wanted["microbatches"])
        if key not in schedules:
            schedules[key] = peer.schedule(*key)
        peer.timed(schedules[key], wanted["warm_up"])
        seconds = [peer.timed(schedules[key], wanted["steps"]) for _ in range(wanted["blocks"])]
        if peer.rank == 0:
            print(json.dumps(seconds), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
