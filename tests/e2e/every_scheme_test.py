# SPDX-License-Identifier: Apache-2.0
"""Threads and processes give the same bytes as one thread, for every scheme in every shape in which it differs.

This takes minutes. `executions_test.py` has a scheme of each kind, and the unit tests of the runtime have all of this in
one process.
"""

import harness
import skips
from executions_test import CASES, SameBytes
from harness import CNN, changed

THREAD_SHAPES = {
    "pipedream without stashing": {"scheme": {"name": "pipedream", "weight_stashing": False}},
    "pipedream, vertical sync": {"scheme": {"name": "pipedream", "vertical_sync": True}},
    "pipedream, two in flight": {"scheme": {"name": "pipedream", "in_flight": 2}, "pipeline.stages": 4},
    "2 replicas of features_replay": {
        "scheme": {"name": "features_replay"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
    },
    "features_replay, recomputed": {"scheme": {"name": "features_replay"}, "pipeline.recompute": "always"},
    "pipedream, offloaded": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 4,
        "pipeline.offload": "always",
    },
    "two waves of hanayo": {
        "scheme": {"name": "hanayo", "waves": 2},
        "pipeline.stages": 8,
        "pipeline.microbatches": 2,
    },
    "spectrain 2": {"scheme": {"name": "spectrain", "version": 2}, "train.drain": "never"},
    "2 replicas of gpipe": {
        "scheme": {"name": "gpipe"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
    },
    "2 replicas of pipedream": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
    },
    "placement of spectrain": {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 4,
        "pipeline.placement": [0, 1, 0, 1],
    },
    "placement of gpipe": {
        "scheme": {"name": "gpipe"},
        "pipeline.stages": 4,
        "pipeline.microbatches": 2,
        "pipeline.placement": [0, 1, 0, 1],
    },
    "placement of interlocking": {
        "scheme": {"name": "interlocking"},
        "pipeline.stages": 4,
        "pipeline.placement": [0, 1, 0, 1],
    },
    "2 replicas of zb_h1": {
        "scheme": {"name": "zb_h1", "chunks": 2},
        "pipeline.stages": 4,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 4,
    },
    "2 intra-op threads": {
        "scheme": {"name": "pipeoptim"},
        "optimizer": {"name": "rmsprop"},
        "model.width": 1,
        "pipeline.threads": 2,
    },
    "float64": {"scheme": {"name": "pipeoptim"}, "train.precision": "float64"},
    "bfloat16": {"scheme": {"name": "pipeoptim"}, "train.precision": "bfloat16"},
    "float16": {"scheme": {"name": "xpipe"}, "train.precision": "float16"},
    "channels last": {"scheme": {"name": "spectrain"}, "pipeline.memory_format": "channels_last"},
    "channels last, undrained in bfloat16": {
        "scheme": {"name": "pipedream"},
        "pipeline.memory_format": "channels_last",
        "train.drain": "never",
        "train.precision": "bfloat16",
    },
    "channels last, recomputed and split": {
        "scheme": {"name": "zb_h1"},
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 4,
        "pipeline.recompute": "always",
    },
    "delays by a law": {
        "scheme": {"name": "delayed_sgd", "delay": {"law": "geometric", "mean": 2, "per_stage": True}}
    },
    "a quadratic with discrepancy": {
        "dataset": {"name": "quadratic", "train": 96, "noise": 0.1},
        "model": {"name": "quadratic", "width": 3, "coupled": True, "discrepancy": 0.5},
        "loss": {"name": "output"},
        "scheme": {"name": "pipemare"},
    },
    "2 replicas in bfloat16": {
        "scheme": {"name": "one_f_one_b"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
        "train.precision": "bfloat16",
    },
}
ONE_EPOCH = changed(CNN, {"train.epochs": 1, "loader.limit_train": 80, "loader.batch_size": 16})
# (stages, replicas): one to four workers.
WORKERS = [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2)]
PROCESS_SHAPES = {
    "placement, as a client has it": {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 4,
        "pipeline.placement": [0, 1, 2, 0],
    },
    "two stages on each worker": {
        "scheme": {"name": "gpipe"},
        "pipeline.stages": 4,
        "pipeline.microbatches": 2,
        "pipeline.placement": [0, 1, 0, 1],
    },
    "a smaller last mini-batch": {
        "scheme": {"name": "pipedream"},
        "loader.drop_last": False,
        "loader.limit_train": 90,
    },
    "three replicas of uneven shares": {
        "scheme": {"name": "data_parallel"},
        "pipeline.stages": 1,
        "pipeline.replicas": 3,
    },
    "never drained, float64": {
        "scheme": {"name": "pipeoptim"},
        "optimizer": {"name": "adamw", "lr": 0.001},
        "train.drain": "never",
        "train.epochs": 2,
        "train.precision": "float64",
    },
    "replicas in bfloat16": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
        "train.precision": "bfloat16",
    },
    "replicas in float16": {
        "scheme": {"name": "spectrain"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.microbatches": 2,
        "train.precision": "float16",
    },
    "channels last, stashed and never drained": {
        "scheme": {"name": "pipedream"},
        "pipeline.memory_format": "channels_last",
        "train.drain": "never",
        "train.epochs": 2,
    },
    "channels last, predicted in bfloat16": {
        "scheme": {"name": "spectrain", "version": 2},
        "pipeline.memory_format": "channels_last",
        "train.precision": "bfloat16",
    },
    "channels last, recomputed": {
        "scheme": {"name": "gpipe"},
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
        "pipeline.recompute": "always",
    },
    "channels last, split": {
        "scheme": {"name": "zb_h1"},
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
    },
    "replicas in channels last": {
        "scheme": {"name": "pipedream"},
        "pipeline.stages": 2,
        "pipeline.replicas": 2,
        "pipeline.memory_format": "channels_last",
        "pipeline.microbatches": 2,
    },
    "trained summing gradients": {
        "scheme": {"name": "pipedream_2bw"},
        "pipeline.microbatches": 4,
        "train.gradient": "sum",
    },
}


class Threads(SameBytes):
    def test_serial_and_threads_agree_for_every_scheme(self):
        for name, changes in CASES.items():
            self.check(name, changed(CNN, changes), ["threads", "threads"])

    def test_serial_and_threads_agree_for_every_shape(self):
        for title, changes in THREAD_SHAPES.items():
            self.check(title, changed(CNN, changes), ["threads"])


@skips.needs("mpirun")
class Processes(SameBytes):
    def test_other_shapes(self):
        for title, changes in PROCESS_SHAPES.items():
            self.check(title, changed(ONE_EPOCH, changes), ["mpi", "threads"])


def shape_of(scheme, stages, replicas):
    """The changes for a scheme in so many stages and replicas, or what it has of them."""
    shape = {"pipeline.stages": stages, "pipeline.replicas": replicas}
    if scheme == "data_parallel":
        shape = {"pipeline.stages": 1, "pipeline.replicas": stages * replicas}
    if scheme == "csv_schedule":
        shape["pipeline.stages"] = 4
    if scheme == "amdp":  # half as many replicas as stages on the same workers
        shape = {"pipeline.stages": 4, "pipeline.replicas": 2 * replicas}
    if scheme in ("chimera", "dualpipe"):  # two replicas on as many workers as one has stages
        shape = {"pipeline.stages": stages + stages % 2, "pipeline.replicas": 2 * replicas}
    changes = CASES[scheme] | shape
    if scheme == "delayed_sgd":
        changes["scheme"] = {"name": scheme, "delay": [3, 1, 2, 0][:stages]}
    if scheme == "interlocking":
        changes["scheme"] = changes["scheme"] | {"width": min(2, stages)}
    return changes


def add_scheme(scheme):
    def test(self):
        for stages, replicas in WORKERS:
            changes = shape_of(scheme, stages, replicas)
            self.check(f"{scheme} {stages} x {replicas}", changed(ONE_EPOCH, changes), ["mpi"])

    setattr(Processes, f"test_{scheme}", test)


for each in CASES:
    add_scheme(each)

if __name__ == "__main__":
    harness.main()
