# SPDX-License-Identifier: Apache-2.0
"""Training steps of every model against the same model in plain PyTorch, as a Markdown table.

  compare_models.py --bench build/tests/bench/model_bench --python PYTHON [CASE…]
  compare_models.py … --stages 4 --scheme pipedream --precision bfloat16 vgg16_bn_32 encoder_32

PYTHON has torch of the LibTorch that the benchmark was built with, torchvision and transformers, as
tests/conformance/setup makes one (`tests/conformance/setup --where` says where). Both sides train on one thread, on a
mini-batch that they hold, of the same shapes: forward, loss, backward, SGD with momentum. They take turns, block by
block; blocks are processor time, and the fastest of each side are compared, for what disturbs a block only makes it
slower. `medians` is the median ratio of neighbouring blocks, with the least and the greatest. A ratio above 1:
Pipewright is slower. Freed memory stays with all processes, as Pipewright keeps it; --plain-malloc leaves the peer's C
library as it is. The number of parameters must be equal.

The peer takes part in float32, and with --precision bfloat16 under autocast too; models of images in both memory
formats each. Of each precision its fastest form counts, and is named.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

LIMIT = 1.05
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1)}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def image_case(name, batch, size=32, **options):
    return {"model": {"name": name, "size": size, "classes": 10, **options}, "batch": batch}


TRANSFORMER = {
    "name": "transformer", "vocabulary": 1000, "tokens": 64, "width": 128, "heads": 4, "feed_forward": 128, "blocks": 3,
}
LSTM = {"name": "residual_lstm", "vocabulary": 1000, "tokens": 50, "width": 128, "blocks": 4}
GNMT = {"name": "gnmt8", "vocabulary": 1000, "tokens": 20, "width": 128}
ROBERTA = {
    "name": "roberta", "vocabulary": 1000, "tokens": 64, "positions": 70, "width": 256, "heads": 4,
    "feed_forward": 1024, "layers": 3, "classes": 2,
}
DECODER = {"name": "decoder", "vocabulary": 1000, "tokens": 128, "width": 256, "heads": 4, "layers": 3, "mlp_width": 768}
GPT = {"name": "gpt", "vocabulary": 1000, "tokens": 64, "width": 256, "heads": 4, "layers": 3}
ENCODER = {
    "name": "encoder", "layers": 3, "width": 256, "heads": 4, "feed_forward": 1024, "tokens": 64, "classes": 10,
}
UNET = {"name": "unet", "depth": 3, "convolutions": 2, "base_channels": 32, "size": 64}
SMOOTHED = {"name": "cross_entropy", "label_smoothing": 0.1, "tokens": "sum"}
PIXELS = {"name": "binary_cross_entropy"}
CIFAR, LARGE = {"stem": "cifar"}, {"stem": "imagenet"}

CASES = {
    "mlp": {"model": {"name": "mlp", "widths": [64] * 8 + [10]}, "batch": 8},
    "mlp_wide": {"model": {"name": "mlp", "widths": [1024] * 8 + [10]}, "batch": 64},
    "cnn": image_case("cnn", 64),
    "cnn_no_dropout": image_case("cnn", 64, dropout=0),
    "vgg16": image_case("vgg16", 8, batch_norm=False),
    "vgg16_bn": image_case("vgg16", 8),
    "vgg16_bn_32": image_case("vgg16", 32),
    "vgg16_bn_quarter": image_case("vgg16", 32, width=0.25),
    "resnet18_cifar": image_case("resnet18", 8, **CIFAR),
    "resnet18_cifar_32": image_case("resnet18", 32, **CIFAR),
    "resnet50_cifar_32": image_case("resnet50", 32, **CIFAR),
    "resnet18_imagenet": image_case("resnet18", 8, 64, **LARGE),
    "resnet34_cifar": image_case("resnet34", 4, **CIFAR),
    "resnet34_imagenet": image_case("resnet34", 4, 64, **LARGE),
    "resnet50_cifar": image_case("resnet50", 4, **CIFAR),
    "resnet50_imagenet": image_case("resnet50", 8, 64, **LARGE),
    "resnet50_blocks": image_case("resnet50", 8, 64, cut="blocks", **LARGE),
    "resnet101_cifar": image_case("resnet101", 4, **CIFAR),
    "resnet101_imagenet": image_case("resnet101", 4, 64, **LARGE),
    "densenet121_cifar": image_case("densenet121", 4, **CIFAR),
    "densenet121_imagenet": image_case("densenet121", 8, 64, **LARGE),
    "googlenet_cifar": image_case("googlenet", 4),
    "googlenet_torchvision": image_case("googlenet", 8, 96, form="torchvision"),
    "inception_v3": image_case("inception_v3", 4, 96),
    "alexnet": image_case("alexnet", 8, 96),
    "mobilenet_v2": image_case("mobilenet_v2", 8, 64),
    "mobilenet_v2_32": image_case("mobilenet_v2", 32, 64),
    "amoebanet_d": image_case("amoebanet_d", 8, 64, cells=3, filters=64),
    "unet": {"model": UNET, "batch": 4, "loss": PIXELS},
    "unet_no_dropout": {"model": {**UNET, "dropout": 0}, "batch": 4, "loss": PIXELS},
    "encoder": {"model": ENCODER, "batch": 8},
    "encoder_32": {"model": {**ENCODER, "layers": 6, "tokens": 128}, "batch": 32},
    "encoder_no_dropout": {"model": {**ENCODER, "dropout": 0}, "batch": 8},
    "transformer": {"model": TRANSFORMER, "batch": 16},
    "transformer_no_dropout": {"model": {**TRANSFORMER, "dropout": 0}, "batch": 16},
    "residual_lstm": {"model": LSTM, "batch": 16},
    "gnmt8": {"model": GNMT, "batch": 16, "loss": SMOOTHED},
    "gnmt8_no_dropout": {"model": {**GNMT, "dropout": 0}, "batch": 16, "loss": SMOOTHED},
    "gnmt16": {"model": {**GNMT, "name": "gnmt16"}, "batch": 16, "loss": SMOOTHED},
    "roberta": {"model": ROBERTA, "batch": 8},
    "roberta_no_dropout": {"model": {**ROBERTA, "dropout": 0}, "batch": 8},
    "decoder": {"model": DECODER, "batch": 8},
    "decoder_grouped": {"model": {**DECODER, "kv_heads": 2}, "batch": 8},
    "decoder_slow_links": {"model": {**DECODER, "preset": "slow_links", "mlp_width": 1024}, "batch": 8},
    "gpt": {"model": GPT, "batch": 8},
    "gpt_no_dropout": {"model": {**GPT, "dropout": 0}, "batch": 8},
}


class Contender:
    """A process that trains on request."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, env={**os.environ, **ONE_THREAD, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def parameters(self):
        """The first line on standard error."""
        line = self.process.stderr.readline()
        if not line.endswith("parameters\n"):
            raise RuntimeError(line + self.process.stderr.read())
        return int(line.split()[0])

    def milliseconds(self, steps):
        """Of one step, in a block of that many."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(self.process.stderr.read().strip())
        return 1e3 * float(answer) / steps


def peers_of(arguments, case):
    """The forms in which PyTorch takes part: by precision and memory format, the arguments of model_peer.py."""
    formats = ["contiguous", "channels_last"] if case["model"].get("size") else ["contiguous"]
    precisions = ["float32"] + ["bfloat16"] * (arguments.precision == "bfloat16")
    return [(precision, format) for precision in precisions for format in formats]


def compared(arguments, name):
    """Our milliseconds per step, and for each precision the peer's fastest form, its milliseconds and the ratios."""
    case = dict(CASES[name])
    pipeline = {"stages": arguments.stages}
    if arguments.memory_format:
        pipeline["memory_format"] = arguments.memory_format
    request = case | {
        "pipeline": pipeline, "scheme": json.loads(arguments.scheme), "train": {"precision": arguments.precision},
    }  # fmt: skip
    memory = {} if arguments.plain_malloc else KEEP_MEMORY
    forms = peers_of(arguments, case)
    with ExitStack() as stack:
        ours = stack.enter_context(Contender([arguments.bench, json.dumps(request)], {}))
        peer = [arguments.python, "-B", Path(__file__).with_name("model_peer.py"), json.dumps(case)]
        theirs = [stack.enter_context(Contender([*peer, *form], memory)) for form in forms]
        counts = [side.parameters() for side in (ours, *theirs)]
        if len(set(counts)) != 1:
            raise RuntimeError(f"{name}: {counts[0]} parameters, the peer has {counts[1]}")
        step = min(min(side.milliseconds(1) for _ in range(3)) for side in (ours, *theirs))
        steps = max(1, round(1e3 * arguments.seconds / step))
        blocks = [[side.milliseconds(steps) for side in (ours, *theirs)] for _ in range(arguments.rounds)]
    best = [min(side) for side in zip(*blocks, strict=True)]
    answers = {}
    for precision in dict(forms):
        column = min((1 + i for i, form in enumerate(forms) if form[0] == precision), key=lambda i: best[i])
        ratios = [block[0] / block[column] for block in blocks]
        answers[precision] = (forms[column - 1][1], best[column], best[0] / best[column], ratios)
    return best[0], answers


def row(name, ours, answers):
    cells = [name, f"{ours:.2f}"]
    for form, theirs, ratio, ratios in answers.values():
        spread = f"{statistics.median(ratios):.3f} ({min(ratios):.2f} – {max(ratios):.2f})"
        cells += [f"{theirs:.2f}, {form}", f"{ratio:.3f}×", spread]
    return f"| {' | '.join(cells)} |"


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all, unless given: " + " ".join(CASES))
    parser.add_argument("--bench", required=True, type=os.path.abspath, help="the program model_bench")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, torchvision and transformers")
    parser.add_argument("--rounds", type=int, default=12, help="blocks of each side")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a block, about")
    parser.add_argument("--plain-malloc", action="store_true", help="do not keep the peer's freed memory")
    parser.add_argument("--strict", action="store_true", help=f"fail where a ratio is above {LIMIT}")
    parser.add_argument("--stages", type=int, default=1, help="stages that Pipewright simulates")
    parser.add_argument("--scheme", default="model_parallel", help="a scheme's name, or its section as JSON")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of Pipewright")
    parser.add_argument("--memory-format", choices=("auto", "contiguous", "channels_last"), help="of Pipewright")
    arguments = parser.parse_args()
    if not arguments.scheme.startswith("{"):
        arguments.scheme = json.dumps({"name": arguments.scheme})
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {' '.join(CASES)}")
    return arguments


def main():
    arguments = parsed_arguments()
    heads = ["case", "ours ms/step"]
    for precision in ["float32"] + ["bfloat16"] * (arguments.precision == "bfloat16"):
        heads += [f"plain {precision} ms/step", "ratio", "medians"]
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|", flush=True)
    slow = []
    for name in arguments.cases or CASES:
        ours, answers = compared(arguments, name)
        print(row(name, ours, answers), flush=True)
        if answers[arguments.precision][2] > LIMIT:
            slow.append(name)
    if slow:
        print(f"above {LIMIT}: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow and arguments.strict else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(str(error))
