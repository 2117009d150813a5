#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imports small models of transformers with several versions of torch and transformers, and trains each for one step.

    PIPEWRIGHT_BINARY=build/pipewright tests/conformance/versions/matrix.py [--rewrite]

Each model goes through tools/import_torch.py, `check`, and one step of SGD with the rate 1 in float64, which moves every
weight by its gradient. The same gradient is computed by that version of PyTorch. Prints a row for each model and all
versions; --rewrite puts the rows into the manual's page of modules. ./setup makes the environments (TORCH_VERSIONS and
TRANSFORMERS_VERSIONS choose others).
"""

import argparse
import collections
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
PAGE = SOURCE / "docs/manual/howto/hugging-face.md"
BEGIN, END = "<!-- what was tested: begins -->\n", "<!-- what was tested: ends -->\n"
TOKENS, VOCABULARY, SAMPLES = 12, 60, 4
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = SIZES | {"num_key_value_heads": 2, "max_position_embeddings": 16, "tie_word_embeddings": False, "pad_token_id": 0}
IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
MODELS = {  # name in the table → (class, configuration, its options, whether each token has a target)
    "GPT-2": (
        "GPT2LMHeadModel", "GPT2Config",
        {"vocab_size": VOCABULARY, "n_positions": 16, "n_embd": 16, "n_head": 2, "n_layer": 2, "tie_word_embeddings": False}
        | {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0} | IDS,
        True,
    ),
    "Llama": ("LlamaForCausalLM", "LlamaConfig", DECODER, True),
    "Mistral, window of 4": ("MistralForCausalLM", "MistralConfig", DECODER | {"sliding_window": 4, "head_dim": 4}, True),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", DECODER | {"head_dim": 4}, True),
    "BERT": (
        "BertForSequenceClassification", "BertConfig",
        SIZES | {"max_position_embeddings": 16, "num_labels": 10, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0},
        False,
    ),
    "DistilBERT": (
        "DistilBertForSequenceClassification", "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 16, "num_labels": 10}
        | {"dropout": 0, "attention_dropout": 0, "seq_classif_dropout": 0},
        False,
    ),
    "ModernBERT": (
        "ModernBertForSequenceClassification", "ModernBertConfig",
        SIZES | {"num_labels": 10, "local_attention": 4, "reference_compile": False, "cls_token_id": 1, "sep_token_id": 2} | IDS,
        False,
    ),
}  # fmt: skip


def cases():
    return [(name, attention, mask) for name in MODELS for attention in ("sdpa", "eager") for mask in (False, True)]


# ---- in the Python of one version ----


def made(name, attention):
    import torch
    import transformers

    model, configuration, options, _ = MODELS[name]
    torch.manual_seed(3)
    return getattr(transformers, model)(getattr(transformers, configuration)(**options, attn_implementation=attention))


def wide():
    """A context in which PyTorch computes in float64 where a model says float32 by name, as the program does in float64."""
    import torch
    from torch.overrides import TorchFunctionMode

    def widened(value):
        return torch.float64 if value is torch.float32 else value

    class Wide(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), named=None):
            if function is torch.Tensor.float:
                return arguments[0].double()
            return function(*map(widened, arguments), **{key: widened(value) for key, value in (named or {}).items()})

    return Wide()


def gradients(module, inputs, y):
    import torch

    module.zero_grad()
    with wide():
        output = module(**inputs).logits
        torch.nn.functional.cross_entropy(output.flatten(0, -2), y.flatten()).backward()
    return {name: each.grad.clone() for name, each in module.named_parameters() if each.grad is not None}


def tried(name, attention, mask, folder):
    """How far the program's gradients are from PyTorch's, and how far they may be."""
    import graph_training
    import import_torch
    import torch
    from importing.inputs import Input
    from safetensors.torch import load_file, save_file

    torch.manual_seed(1)
    inputs = {"input_ids": torch.randint(3, VOCABULARY, (SAMPLES, TOKENS))}
    if mask:
        inputs["attention_mask"] = (torch.arange(TOKENS) < torch.randint(TOKENS // 2, TOKENS + 1, (SAMPLES, 1))).long()
    each = MODELS[name][3]
    y = torch.randint(VOCABULARY if each else 10, (SAMPLES, TOKENS) if each else (SAMPLES,))
    said = import_torch.import_module(made(name, attention), [Input((TOKENS,), torch.int64, key) for key in inputs], folder / "net")
    if [line for line in said if "something else" in line]:
        raise ValueError("the module computes something else in evaluation")
    tensors = {**(inputs if mask else {"x": inputs["input_ids"]}), "y": y}
    save_file({f"{part}.{key}": value.clone() for part in ("train", "test") for key, value in tensors.items()}, folder / "data.safetensors")
    (folder / "one.yaml").write_text(json.dumps({
        "dataset": {"name": "tensors", "file": "data.safetensors"},
        "loader": {"batch_size": SAMPLES, "shuffle": False},
        "model": {"name": "graph", "file": "net", "weights": "net/weights.safetensors", "depth": 3},
        "pipeline": {"stages": 2, "balance": "layers"},
        "scheme": {"name": "gpipe"},
        "optimizer": {"name": "sgd", "lr": 1.0},
        "train": {"epochs": 1, "precision": "float64", "checkpoint": {"every": 0}},
    }))  # fmt: skip
    for command in (("check", "one.yaml"), ("run", "one.yaml", "--out", "one")):
        done = subprocess.run([os.environ["PIPEWRIGHT_BINARY"], *command], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"{command[0]}: {done.stderr.strip().splitlines()[-1]}")
    final = load_file(folder / "one" / "final.safetensors")
    module = made(name, attention).double().train()
    before = {key: value.detach().clone() for key, value in module.named_parameters()}
    theirs = gradients(module, inputs, y)
    if set(theirs) != set(final):
        raise ValueError(f"trains other parameters: {sorted(set(theirs) ^ set(final))}")
    far = max(graph_training.difference(before[key] - final[key], theirs[key]) for key in theirs)
    graph_training.nudge(module)
    response = max(graph_training.difference(moved, theirs[key]) for key, moved in gradients(module, inputs, y).items())
    count = graph_training.roundings(module, SAMPLES * TOKENS * 16, 1)
    return far, count * max(response, torch.finfo(torch.float64).eps)


def worker(only):
    """Prints a row of JSON for each case."""
    sys.path[:0] = [str(SOURCE / "tests"), str(SOURCE / "tests" / "conformance"), str(SOURCE / "tools")]
    import torch

    torch.set_num_threads(1)
    for name, attention, mask in cases():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="pipewright-versions-") as folder:
            try:
                far, limit = tried(name, attention, mask, Path(folder))
                row = {"far": far, "limit": limit}
            except Exception as error:
                row = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps({"model": name, "attention": attention, "mask": mask, **row}), flush=True)


# ---- in any Python ----


def wanted(variable, folder, prefix):
    """Names of folders: of the versions in the variable, or of all that are there."""
    versions = os.environ.get(variable, "").split()
    return [prefix + each for each in versions] or sorted(path.name for path in folder.glob(f"{prefix}*"))


def measured(only):
    """(torch, transformers) → rows."""
    folder = Path(subprocess.run([HERE / "setup"], check=True, capture_output=True, text=True).stdout.strip())
    environment = os.environ | {
        "PIPEWRIGHT_BINARY": str(Path(os.environ["PIPEWRIGHT_BINARY"]).resolve()),
        "PIPEWRIGHT_SOURCE_DIR": str(SOURCE),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    found = {}
    for torch in wanted("TORCH_VERSIONS", folder, "torch-"):
        for transformers in wanted("TRANSFORMERS_VERSIONS", folder, "transformers-"):
            command = [folder / torch / "bin" / "python", "-B", __file__, "--worker", *(only or [])]
            done = subprocess.run(command, env=environment | {"PYTHONPATH": str(folder / transformers)}, capture_output=True, text=True)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                sys.exit(1)
            key = torch.removeprefix("torch-"), transformers.removeprefix("transformers-")
            found[key] = rows
            for row in rows:
                print(json.dumps({"torch": key[0], "transformers": key[1], **row}), flush=True)
    return found


def read(path):
    """(torch, transformers) → rows, from what earlier runs have printed."""
    found = collections.defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            found[row.pop("torch"), row.pop("transformers")].append(row)
    return found


def right(row):
    return "error" not in row and row["far"] <= row["limit"]


def table(found):
    """A row for each model and transformers: how many cases of how many are right, and how far the worst is."""
    by_model = collections.defaultdict(list)
    for (torch, transformers), rows in found.items():
        for row in rows:
            by_model[row["model"], transformers].append((torch, row))
    torches = sorted({torch for torch, _ in found}, key=lambda version: [int(part) for part in version.split(".")])
    head = "| model | transformers | " + " | ".join(f"torch {each}" for each in torches) + " | farthest gradient |"
    lines = [head, "|---|---|" + "---|" * len(torches) + "---|"]
    for (model, transformers), rows in by_model.items():
        cells = []
        for torch in torches:
            here = [row for each, row in rows if each == torch]
            cells.append(f"{sum(map(right, here))} of {len(here)}")
        far = max((row["far"] for _, row in rows if "far" in row), default=float("nan"))
        lines.append(f"| {model} | {transformers} | {' | '.join(cells)} | {far:.0e} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="models, by their names in the table")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="what earlier runs have printed, of which a table is made")
    parser.add_argument("--rewrite", action="store_true", help=f"write the table into {PAGE.relative_to(SOURCE)}")
    given = parser.parse_args()
    if given.worker:
        return worker(given.only)
    found = read(given.rows) if given.rows else measured(given.only)
    made_table = table(found)
    print(made_table)
    if given.rewrite:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
        day = f"Measured on {datetime.date.today()}, each with `sdpa` and `eager`, with and without `attention_mask`:\n\n"
        PAGE.write_text(page[:begin] + day + made_table + page[end:], encoding="utf-8")
    return 0 if all(right(row) for rows in found.values() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
