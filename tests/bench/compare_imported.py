# SPDX-License-Identifier: Apache-2.0
"""Training steps of imported modules against the built-in model and against PyTorch, as a Markdown table.

  compare_imported.py --bench build/tests/bench/model_bench --binary build/pipewright --python PYTHON [CASE…]

The module is the one that compare_models.py holds against the built-in model, so that all three train the same layers:
the module as tools/import_torch.py writes it, the built-in model, and PyTorch in its fastest form. They take turns, block
by block, in processor time; `ratio` compares the fastest blocks of the imported module and of the faster of the other
two, `medians` is the median of the ratios of neighbouring blocks. With --stages 4 --execution threads Pipewright's two have
four workers, each a thread, and PyTorch is uncut as before: what cutting costs stands in the ratio, too.

`import` is the time of tools/import_torch.py as a whole and `check` that of `pipewright check`, by the clock, the fastest
of three.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from compare_models import CASES, KEEP_MEMORY, Contender, peers_of

HERE = Path(__file__).resolve().parent
IMPORTED = ("resnet18_imagenet", "vgg16_bn_quarter", "gpt")
DEPTHS = {"gpt": 4}
LIMIT = 1.02
REPETITIONS = 3


def fastest(command, **options):
    """Seconds by the clock."""
    taken = []
    for _ in range(REPETITIONS):
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, **options)
        taken.append(time.monotonic() - begin)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
    return min(taken)


def imported(arguments, model, folder):
    """Imports the peer's module. Returns the section of an experiment that names it, and the seconds that it took."""
    options = {key: value for key, value in model.items() if key != "name"}
    (folder / "made.py").write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom plain_models import MODELS\n\n\n"
        f"def make_model():\n    return MODELS[{model['name']!r}](**{options!r})\n"
    )
    tokens = "vocabulary" in model
    shape = [str(model["tokens"]), "--dtype", "int64"] if tokens else [f"3,{model['size']},{model['size']}"]
    command = [arguments.python, "-B", HERE.parents[1] / "tools" / "import_torch.py", f"{folder / 'made.py'}:make_model"]
    seconds = fastest([*command, "--input", *shape, "--out", folder / "net"], env={**os.environ, "HF_HUB_OFFLINE": "1"})
    weights = str(folder / "net" / "weights.safetensors")
    return {"name": "graph", "file": str(folder / "net"), "weights": weights, "depth": DEPTHS.get(model["name"], 2)}, seconds


def request(arguments, case, model):
    pipeline = {"stages": arguments.stages, "execution": arguments.execution}
    if arguments.stages > 1:
        pipeline["balance"] = "layers"
    if arguments.memory_format:
        pipeline["memory_format"] = arguments.memory_format
    return {**case, "model": model, "pipeline": pipeline, "scheme": {"name": arguments.scheme}}


def check_seconds(arguments, case, model, folder):
    experiment = request(arguments, case, model) | {
        "dataset": {"name": "synthetic"}, "loader": {"batch_size": case["batch"]}, "optimizer": {"name": "sgd", "lr": 0.01},
    }  # fmt: skip
    experiment.pop("batch")
    (folder / "check.yaml").write_text(json.dumps(experiment))
    return fastest([arguments.binary, "check", folder / "check.yaml"], cwd=folder)


def row(arguments, name):
    case = CASES[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipewright-imported-")))
        model, import_seconds = imported(arguments, case["model"], folder)
        checked = check_seconds(arguments, case, model, folder)
        sides = [
            stack.enter_context(Contender([arguments.bench, json.dumps(request(arguments, case, each))], {}))
            for each in (model, case["model"])
        ]
        for form in peers_of(argparse.Namespace(precision="float32"), case):
            peer = [arguments.python, "-B", HERE / "model_peer.py", json.dumps(case), *form]
            sides.append(stack.enter_context(Contender(peer, KEEP_MEMORY)))
        counts = [side.parameters() for side in sides]
        if len(set(counts)) != 1:
            raise RuntimeError(f"{name}: the sides have {counts} parameters")
        step = min(min(side.milliseconds(1) for _ in range(3)) for side in sides)
        steps = max(1, round(1e3 * arguments.seconds / step))
        blocks = [[side.milliseconds(steps) for side in sides] for _ in range(arguments.rounds)]
    best = [min(side) for side in zip(*blocks, strict=True)]
    other = min(range(1, len(best)), key=best.__getitem__)
    ratios = [block[0] / block[other] for block in blocks]
    cells = [name, f"{import_seconds:.1f} s", f"{1e3 * checked:.0f} ms", f"{best[0]:.2f}", f"{best[1]:.2f}", f"{min(best[2:]):.2f}"]
    spread = f"{statistics.median(ratios):.3f} ({min(ratios):.2f} – {max(ratios):.2f})"
    return " | ".join([*cells, f"{best[0] / best[other]:.3f}×", spread]), best[0] / best[other]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of compare_models.py; {' '.join(IMPORTED)}, unless given")
    parser.add_argument("--bench", required=True, type=os.path.abspath, help="the program model_bench")
    parser.add_argument("--binary", required=True, type=os.path.abspath, help="the program pipewright")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, torchvision and transformers")
    parser.add_argument("--rounds", type=int, default=12, help="blocks of each side")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a block, about")
    parser.add_argument("--stages", type=int, default=1)
    parser.add_argument("--execution", choices=("serial", "threads"), default="serial")
    parser.add_argument("--scheme", default="model_parallel")
    parser.add_argument("--memory-format", choices=("auto", "contiguous", "channels_last"), help="of Pipewright's two")
    parser.add_argument("--strict", action="store_true", help=f"fail where a ratio is above {LIMIT}")
    arguments = parser.parse_args()
    print("| case | import | check | imported | built in | PyTorch | ratio | medians |\n|---|---|---|---|---|---|---|---|", flush=True)
    slow = []
    for name in arguments.cases or IMPORTED:
        text, ratio = row(arguments, name)
        print(f"| {text} |", flush=True)
        slow += [name] * (ratio > LIMIT)
    return 1 if slow and arguments.strict else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(str(error))
