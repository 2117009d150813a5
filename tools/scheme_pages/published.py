# SPDX-License-Identifier: Apache-2.0
"""The rows of experiments/published that are of one scheme."""

import csv

# What the files of others call a scheme of ours, and with which options it is that scheme.
NAMES = {
    "dp": ("data_parallel", ""),
    "vanilla_mp": ("pipedream", "weight_stashing: false"),
    "spectrain_v1": ("spectrain", "version: 1"),
    "spectrain_v2": ("spectrain", "version: 2"),
}
SOURCES = {
    "spectrain_table.csv": "SpecTrain's repository",
    "pipeoptim.csv": "PipeOptim",
    "gpipe_test.csv": "gpipe_test",
    "torchgpipe.csv": "torchgpipe",
    "torchgpipe_speed.csv": "torchgpipe, up to eight P40",
    "torchgpipe_memory.csv": "torchgpipe, up to eight P40",
}
METRICS = {
    "test_top1_percent": "test accuracy, %",
    "max_accuracy_percent": "best accuracy, %",
    "max_bleu": "best BLEU",
    "accuracy_percent": "accuracy, %",
    "top1_error_percent": "top-1 error, %",
    "speedup": "speed-up",
    "peak_activation_gib": "activations on all devices, GiB",
    "memory_gib": "memory of all devices, GiB",
}
PREFIXES = {"pipeline": "gpipe", "n=": "gpipe", "dataparallel": "data_parallel"}  # of a `setting`, in lower case


def published(folder, scheme):
    """A table of all rows of the scheme, one line for each file, model and metric; a sentence if there are none."""
    lines = {}
    for name, source in SOURCES.items():
        with open(folder / name, newline="", encoding="utf-8") as opened:
            for each in csv.DictReader(opened):
                if scheme_of(each)[0] == scheme and metric_of(each):
                    lines.setdefault((source, name, model_of(each), measured(each)), []).append(value(each))
    if not lines:
        return "No published numbers of this scheme are in `experiments/published`."
    rows = ["| source | model and data | measured | values |", "|---|---|---|---|"]
    for (source, name, model, metric), values in lines.items():
        in_order = "; ".join(text for _, text in sorted(values, key=lambda each: each[0]))
        rows.append(f"| [{source}](../../../experiments/published/{name}) | {model} | {metric} | {in_order} |")
    return "\n".join(rows)


def scheme_of(row):
    """The scheme's name, and its options where they are not the defaults."""
    if "scheme" in row:
        return NAMES.get(row["scheme"], (row["scheme"], ""))
    setting = row["setting"].lower()
    return next(((name, "") for prefix, name in PREFIXES.items() if setting.startswith(prefix)), ("", ""))


def model_of(row):
    if "model" in row:
        return f"{row['model']}, {row['dataset']}"
    return row.get("benchmark", "ResNet-101, ImageNet")


def metric_of(row):
    """The key in METRICS of what was measured, or None."""
    if "metric" in row:
        return row["metric"]
    return next((name for name in METRICS if row.get(name)), None)


def measured(row):
    return METRICS[metric_of(row)] + (f", {row['optimizer']}" if "optimizer" in row else "")


def value(row):
    """(options, by which values are sorted; the value behind what it is of)."""
    number = row["value"] if "metric" in row else row[metric_of(row)]
    options = scheme_of(row)[1]
    stages = f"{row['num_stages']} stages" if row.get("num_stages", "1") != "1" else ""
    what = ", ".join(filter(None, [options, stages, row["source"] if "optimizer" in row else "", row.get("setting", "")]))
    deviation = f" ± {row['std']}" if row.get("std") else ""
    return options, f"{what} **{number}**{deviation}".strip()
