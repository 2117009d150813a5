# SPDX-License-Identifier: Apache-2.0
"""Time of a step of GPipe in one process, against torchgpipe's, as a Markdown table.

  compare_torchgpipe.py --pipewright build/pipewright --python PYTHON_WITH_TORCH_AND_TORCHGPIPE

Four stages on one CPU, four micro-batches, one thread, nothing recomputed; the same model cut alike, the same mini-batch
size, SGD with momentum. The contenders take turns, block of steps by block of steps; start-up and a first block are not
counted, and the fastest block of each is compared. Ours is timed as the run folder says it: `seconds` of an epoch with
its loading, without evaluation or files. A ratio above 1: Pipewright is faster.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from compare_pipelining import BLOCKS, CASES, ONE_THREAD, argument_parser, our_seconds

STAGES = 4
CASES = {
    "mlp_8x64": {"model": {"name": "mlp", "widths": [64] * 9 + [10]}, "batch": 8, "balance": {STAGES: [2, 2, 2, 3]}},
    "mlp_8x1024": CASES["mlp"],
    "vgg16_bn": CASES["vgg16_bn"],
    "resnet18": {
        "model": {"name": "resnet18", "stem": "cifar"}, "batch": 32,
        "balance": {STAGES: [2, 2, 2, 4]},
    },
    "encoder": CASES["encoder_no_dropout"],
}


class Peer:
    """The process of torchgpipe, waiting for requests."""

    def __init__(self, python, case, microbatches):
        script = Path(__file__).with_name("torchgpipe_peer.py")
        self.process = subprocess.Popen(
            [python, script, "--case", json.dumps(case), "--balance", json.dumps(case["balance"][STAGES]),
             "--microbatches", str(microbatches)],
            env=ONE_THREAD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def seconds(self, steps, warm_up):
        """Of each block of `steps` steps."""
        self.process.stdin.write(json.dumps({"steps": steps, "warm_up": warm_up, "blocks": BLOCKS}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("torchgpipe's process ended; see its message above")
        return json.loads(answer)


def compared(arguments, case):
    """Milliseconds per step of every block: ours, theirs."""
    ours, theirs = [], []
    with Peer(arguments.python, case, arguments.microbatches) as peer:
        step = min(peer.seconds(steps=1, warm_up=1))
        steps = max(2, round(arguments.seconds / step))
        for _ in range(arguments.rounds):
            ours += our_seconds(arguments.pipewright, case, STAGES, "gpipe", arguments.microbatches, steps, "serial")
            theirs += peer.seconds(steps, warm_up=max(1, steps // 4))
    return [1e3 * s / steps for s in ours], [1e3 * s / steps for s in theirs]


def parsed_arguments():
    parser = argument_parser(__doc__, "a Python with torchgpipe and the torch built with", list(CASES), rounds=3)
    parser.add_argument("--microbatches", type=int, default=4)
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    print("| case | ours ms/step | theirs ms/step | ratio | ratio of medians |")
    print("|---|---|---|---|---|", flush=True)
    for name in arguments.cases:
        ours, theirs = compared(arguments, CASES[name])
        best = f"{min(ours):.2f} | {min(theirs):.2f} | {min(theirs) / min(ours):.2f}×"
        print(f"| {name} | {best} | {statistics.median(theirs) / statistics.median(ours):.2f}× |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}: {error.stderr.strip()}")
