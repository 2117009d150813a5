# SPDX-License-Identifier: Apache-2.0
"""Lets plain PyTorch take its turn in every round of `device_bench steps`, in its usual and in its fastest form.

  gpu_peer.py [--compiled] BENCH… --device D --model M --precision P --numerics N [--small] [more options of BENCH]

BENCH is the command of device_bench, with `steps`. Prints what it prints, a case each line of JSON, and adds to each
step the milliseconds of PyTorch's forms in the same rounds, and for each form and each of our ways the median, lowest and
highest ratio of rounds:

  defaults   what PyTorch does unless it is asked for something else: float32 is IEEE in products and TF32 in convolutions,
             sums have any order
  graph      with the case's numerics; images and kernels channels-last, the whole step one CUDA graph
  compiled   with --compiled, which takes a minute each: the same model through torch.compile, no graph of the whole step

All of them have autocast in bfloat16, fused SGD with momentum, and read a loss after the next step is queued or, of a
graph, after the block. A form that fails says so in its place. On a CPU there is no graph, and nothing is compiled.
"""

import json
import os
import statistics
import subprocess
import sys
import time

SIZES = {  # of device_bench: batch; side of an image, or vocabulary, tokens, width, heads, layers
    ("vgg16_bn", False): (128, 32), ("vgg16_bn", True): (4, 32),
    ("resnet50", False): (64, 224), ("resnet50", True): (2, 64),
    ("gpt", False): (4, 50257, 1024, 768, 12, 12), ("gpt", True): (2, 1000, 32, 64, 4, 3),
}  # fmt: skip
VGG16 = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"]


def gpt(vocabulary, tokens, width, heads, layers):
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            parts = self.qkv(self.ln_1(x)).chunk(3, -1)
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
            x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids):
            return self.head(self.norm(self.blocks(self.wte(ids) + self.wpe.weight))).flatten(0, 1)

    return Gpt()


def model_and_batch(name, small):
    """The module, and its inputs and targets."""
    import torch

    batch, *sizes = SIZES[name, small]
    if name == "gpt":
        words = torch.randint(sizes[0], (2, batch, sizes[1]))
        return gpt(*sizes), words[0], words[1].flatten()
    from torch import nn
    from torchvision import models

    if name == "resnet50":
        model = models.resnet50(num_classes=10)
    else:
        pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
        model = nn.Sequential(models.vgg.make_layers(VGG16, batch_norm=True), *pooled)
    return model, torch.randn(batch, 3, sizes[0], sizes[0]), torch.randint(10, (batch,))


def compute_with(numerics):
    import torch

    fast, defaults = numerics == "fast", numerics == "defaults"
    torch.backends.cuda.matmul.allow_tf32 = fast
    torch.backends.cudnn.allow_tf32 = fast or defaults
    torch.backends.cudnn.benchmark = fast
    torch.backends.cudnn.deterministic = numerics == "repeatable"
    torch.use_deterministic_algorithms(numerics == "repeatable")
    torch.utils.deterministic.fill_uninitialized_memory = False  # as ours: it costs a kernel for each new tensor


class Form:
    """One way in which PyTorch trains."""

    def __init__(self, name, given):
        import torch

        self.numerics = "defaults" if name == "defaults" else given["numerics"]
        self.device = torch.device(given["device"])
        self.mixed = given["precision"] == "bfloat16"
        compute_with(self.numerics)
        self.model, self.x, self.y = (part.to(self.device) for part in model_and_batch(given["model"], given["small"]))
        if name != "defaults" and self.x.dim() == 4:
            self.model, self.x = (part.to(memory_format=torch.channels_last) for part in (self.model, self.x))
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, fused=True)
        self.forward, self.graph, self.previous = self.model, None, None
        if name == "compiled":
            self.forward = torch.compile(self.model, backend="inductor" if self.device.type == "cuda" else "eager")
        if name == "graph" and self.device.type == "cuda":
            self.capture()

    def step(self):
        import torch

        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            loss = torch.nn.functional.cross_entropy(self.forward(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def capture(self):
        import torch

        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.step()

    def block(self, steps):
        """Milliseconds of a step."""
        import torch

        compute_with(self.numerics)
        begin = time.perf_counter()
        for _ in range(steps):
            if self.graph:
                self.graph.replay()
                continue
            loss = self.step()
            if self.previous is not None:
                self.previous.item()
            self.previous = loss
        if self.graph:
            self.loss.item()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - begin) / steps


class Peer:
    """PyTorch's forms. One that fails is left out, and says why."""

    def __init__(self, names, given):
        self.names, self.given = names, given
        self.forms, self.taken, self.failed = {}, {}, {}

    def turn(self, round_, steps):
        if round_ == 0:
            self.taken = {}  # of a case that ended with an error
        for name in self.names:
            if name in self.failed:
                continue
            try:
                if name not in self.forms:
                    self.forms[name] = Form(name, self.given)
                milliseconds = self.forms[name].block(steps)
                if round_ > 0:
                    self.taken.setdefault(name, []).append(milliseconds)
            except Exception as failure:  # a form of PyTorch's, whatever it raises: the others may still be measured
                self.failed[name] = f"{type(failure).__name__}: {failure}".splitlines()[0]

    def added(self, case):
        """What PyTorch took in the rounds of a case."""
        fields = {f"pytorch_{name}_error": said for name, said in self.failed.items()}
        for name, rounds in self.taken.items():
            fields[f"pytorch_{name}_ms"] = rounds
            if (parameters := self.forms[name].parameters) != case["parameters"]:
                fields[f"pytorch_{name}_error"] = f"{parameters} parameters"
            for way in ("serial", "one_stream", "own_streams", "graphs"):
                if len(case.get(f"{way}_ms", ())) != len(rounds):
                    continue
                ratios = sorted(ours / theirs for ours, theirs in zip(case[f"{way}_ms"], rounds, strict=True))
                fields[f"{way}_over_pytorch_{name}"] = {
                    "median": statistics.median(ratios), "low": ratios[0], "high": ratios[-1],
                }  # fmt: skip
        self.taken = {}
        return fields


def main(arguments):
    names = ["compiled"] if "--compiled" in arguments else ["defaults", "graph"]
    command = [each for each in arguments if each != "--compiled"]
    given = {name: command[command.index(f"--{name}") + 1] for name in ("device", "model", "precision", "numerics")}
    given["small"] = "--small" in command
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as ours
    peer = Peer(names, given)
    failed = False
    with subprocess.Popen([*command, "--paced"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout:
            case = json.loads(line)
            if case["kind"] == "turn":
                peer.turn(case["round"], case["steps"])
                bench.stdin.write("\n")
                bench.stdin.flush()
                continue
            if case["kind"] == "step" and "error" not in case:
                case |= peer.added(case)
            failed |= any(name.endswith("error") for name in case)
            print(json.dumps(case), flush=True)
    return bench.returncode or failed


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # the time is over
        sys.exit(130)
