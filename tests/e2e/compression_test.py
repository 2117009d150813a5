# SPDX-License-Identifier: Apache-2.0
"""Compressed edges: the same bytes in every execution, counted, taken up again, said in words."""

import json

import harness
import skips
import tolerances
from harness import CNN, MLP, changed

FP16 = changed(CNN, {"pipeline.compression": {"name": "fp16", "backward": {"name": "bf16"}}, "scheme": {"name": "gpipe"}})
EXECUTIONS = skips.with_mpi(["threads"], "remembering codecs")
COUNTED = ("kind", "from", "to", "minibatches", "messages", "value_bytes", "sent_bytes", "ratio")

REMEMBERING = {
    "top_k": {
        "name": "top_k",
        "feedback": "sample",
        "mask_gradient": True,
        "backward": {"name": "top_k", "feedback": "tensor"},
    },
    "sign": {"name": "sign", "feedback": "sample", "backward": {"name": "sign", "feedback": "tensor"}},
    "power_iteration": {"name": "power_iteration", "rank": 1},
    "aq_sgd": {"name": "aq_sgd", "bits": 2, "backward": {"name": "bf16"}},
}


def counted(run):
    if not (run.path / "traffic.csv").exists():
        return []  # one worker sends nothing
    return [{column: row[column] for column in COUNTED} for row in run.rows("traffic.csv")]


def shown(number):
    """The number that a table's CSV shows for this one."""
    return float(f"{number:.{tolerances.TABLE_DIGITS}g}")


class Compression(harness.EndToEnd):
    def test_all_executions_send_and_learn_the_same(self):
        serial = self.train(FP16, "serial")
        for execution in EXECUTIONS:
            run = self.train(FP16, execution, "--set", f"pipeline.execution={execution}")
            self.assert_same_result(serial, run)
            self.assertEqual(counted(serial), counted(run))

    def test_a_client_holds_both_ends_and_only_its_edges_are_compressed(self):
        client = changed(FP16, {
            "pipeline.stages": 4,
            "pipeline.placement": [0, 1, 2, 0],
            "pipeline.compression": {"name": "fp16", "edges": [0, 2]},
        })
        serial = self.train(client, "serial")
        for row in counted(serial):
            inner = {row["from"], row["to"]} == {"1", "2"}
            self.assertEqual(float(row["ratio"]) == 1, inner)
        self.assert_same_result(serial, self.train(client, "threads", "--set", "pipeline.execution=threads"))

    def test_half_the_bytes_cross_and_a_header_each(self):
        rows = counted(self.train(FP16, "out"))
        self.assertEqual([(r["from"], r["to"]) for r in rows], [("0", "1"), ("1", "2"), ("1", "0"), ("2", "1")])
        for row in rows:
            self.assertEqual(row["messages"], "12")  # 6 mini-batches of 16 samples, twice
            values = int(row["value_bytes"])
            header = 16 + 8 * 4  # feature maps have four dimensions
            self.assertEqual(int(row["sent_bytes"]), values // 2 + 12 * header)

    def test_a_resumed_run_has_counted_everything(self):
        whole = self.train(FP16, "whole")
        self.write("parts.yaml", FP16)
        failing = self.failing("final.safetensors", "rename", 1, kill=True)
        self.pipewright("run", "parts.yaml", "--out", "parts", code=-9, environment=failing)
        self.resume("parts")
        parts = harness.Run(self.folder / "parts")
        self.assert_same_result(whole, parts)
        self.assertEqual(counted(whole), counted(parts))

    def assert_the_same_in_all_executions_and_when_resumed(self, experiment, name):
        """Killed when all is trained, a run is resumed from the middle of its last epoch. Returns
        what was run, and the whole run."""
        experiment = changed(experiment, {"train.checkpoint": {"every": 4, "unit": "minibatch"}})
        whole = self.train(experiment, name)
        self.write("parts.yaml", experiment)
        out, failing = f"{name}-parts", self.failing("final.safetensors", "rename", 1, kill=True)
        self.pipewright("run", "parts.yaml", "--out", out, code=-9, environment=failing)
        self.pipewright("run", "parts.yaml", "--out", out, "--resume")
        runs = [harness.Run(self.folder / out)]
        for execution in EXECUTIONS:
            runs.append(self.train(experiment, f"{name}-{execution}", "--set", f"pipeline.execution={execution}"))
        for run in runs:
            self.assert_same_result(whole, run)
            self.assertEqual(counted(whole), counted(run))
        return experiment, whole

    def test_codecs_that_remember_learn_the_same_in_all_executions_and_when_resumed(self):
        for name, codec in REMEMBERING.items():
            with self.subTest(name):
                scheme = "pipedream" if name in ("sign", "power_iteration") else "gpipe"
                changes = {"pipeline.compression": codec, "scheme": {"name": scheme}, "pipeline.microbatches": 2}
                self.assert_the_same_in_all_executions_and_when_resumed(changed(CNN, changes), name)

    def test_tables_show_what_crossed(self):
        self.write("x.yaml", FP16 | {"sweep": {"grid": {"pipeline.compression": [{"name": "none"}, {"name": "fp16"}]}}})
        self.pipewright("sweep", "x.yaml", "--out", "s")
        table = {}
        for metric in ("sent_ratio", "sent_mib", "required_mib_per_s", "codec_share"):
            rows = self.pipewright("table", "x.yaml", "--out", "s", "--format", "csv", "--metric", metric).out
            table[metric] = [float(row.split(",")[3]) for row in rows.splitlines()[1:3]]
        minibatches = 12
        runs = sorted((self.folder / "s").glob("*/traffic.csv"), key=lambda file: "fp16" in file.parent.name)
        self.assertEqual(len(runs), 2)
        for column, file in enumerate(runs):
            rows = counted(harness.Run(file.parent))
            values, sent = (sum(int(row[key]) for row in rows) for key in ("value_bytes", "sent_bytes"))
            self.assertEqual(sent < values, column == 1)
            self.assertEqual(table["sent_ratio"][column], shown(sent / values))
            self.assertEqual(table["sent_mib"][column], shown(sent / minibatches / 2**20))
        self.assertEqual(table["codec_share"][0], 0)
        self.assertGreater(table["codec_share"][1], 0)
        self.assertGreater(table["required_mib_per_s"][0], 0)

    def test_compressed_gradients_are_the_same_in_all_executions_and_when_resumed(self):
        shapes = {
            "pair": {"pipeline.stages": 1, "pipeline.replicas": 2, "scheme": {"name": "data_parallel"}},
            "pipes": {"pipeline.stages": 2, "pipeline.replicas": 2, "scheme": {"name": "gpipe"}},
        }
        kinds = {"pair": ["reduce"], "pipes": ["forward", "backward", "reduce", "reduce"]}
        for name, shape in shapes.items():
            with self.subTest(name):
                experiment, whole = self.assert_the_same_in_all_executions_and_when_resumed(
                    changed(CNN, shape | {"pipeline.gradient_compression": {"name": "powersgd", "rank": 2}}), name
                )
                plain = changed(experiment, {"pipeline.gradient_compression": {"name": "none"}})
                plain = self.train(plain, f"{name}-plain")
                self.assertNotEqual(whole.bytes(), plain.bytes())
                self.assertEqual([row["kind"] for row in counted(whole)], kinds[name])
                for row, uncompressed in zip(counted(whole), counted(plain), strict=True):
                    self.assertEqual(row["value_bytes"], uncompressed["value_bytes"])
                    self.assertEqual(uncompressed["ratio"], "1")
                    self.assertEqual(float(row["ratio"]) < 1, row["kind"] == "reduce")

    def test_what_replicas_sum_is_counted_and_simulated(self):
        pair = changed(MLP, {
            "pipeline": {"stages": 1, "replicas": 2},
            "model.widths": [64, 32, 10],
            "scheme": {"name": "data_parallel"},
            "sweep.grid": {"pipeline.gradient_compression": [{"name": "none"}, {"name": "powersgd", "rank": 1}]},
        })
        values, factors = 64 * 32 + 32 + 32 * 10 + 10, 64 + 32 + 32 + 32 + 10 + 10
        self.write("x.yaml", pair)
        self.pipewright("sweep", "x.yaml", "--out", "s")
        table = {}
        for metric in ("reduced_ratio", "reduced_mib"):
            rows = self.pipewright("table", "x.yaml", "--out", "s", "--format", "csv", "--metric", metric).out
            table[metric] = [float(row.split(",")[3]) for row in rows.splitlines()[1:3]]
        self.assertEqual(table["reduced_ratio"][0], 1)
        self.assertEqual(table["reduced_ratio"][1], shown(factors / values))
        self.assertEqual(table["reduced_mib"][1], shown(2 * 4 * factors / 2**20))
        del pair["sweep"]
        pair["pipeline"]["gradient_compression"] = {"name": "powersgd", "rank": 1}
        self.write("y.yaml", pair)
        self.pipewright("profile", "y.yaml", "--repetitions", "1")
        done = self.pipewright(
            "simulate", "y.yaml", "--profile-file", "profile.yaml", "--minibatches", "3", "--json", "s.json"
        )
        self.assertIn("how fast powersgd encodes and decodes", done.out)
        links = json.loads((self.folder / "s.json").read_text())["links"]
        self.assertEqual([link["bytes"] for link in links], [3 * 4 * factors] * 2)  # a ring of two

    def test_what_crossed_between_stages_of_an_earlier_layout_stays_counted(self):
        experiment = changed(MLP, {
            "pipeline": {"stages": 4, "balance": "layers", "compression": {"name": "fp16"}},
            "train.checkpoint": {"every": 4, "unit": "minibatch"},
        })
        self.write("x.yaml", experiment)
        failing = self.failing("final.safetensors", "rename", 1, kill=True)
        self.pipewright("run", "x.yaml", "--out", "x", code=-9, environment=failing)
        self.resume("x", "--set", "pipeline.stages=2", "--set", "pipeline.placement=[1, 0]")
        rows = harness.Run(self.folder / "x").rows("traffic.csv")
        workers = {(r["from"], r["to"]): (r["from_worker"], r["to_worker"]) for r in rows}
        self.assertEqual(workers[("0", "1")], ("1", "0"))
        self.assertEqual(workers[("2", "3")], ("2", "3"))  # nobody knows any more where they were

    def test_another_number_of_replicas_begins_the_errors_anew_and_says_so(self):
        experiment = changed(MLP, {
            "pipeline": {"replicas": 2, "gradient_compression": {"name": "powersgd"}},
            "scheme": {"name": "data_parallel"},
            "train.checkpoint": {"every": 4, "unit": "minibatch"},
        })
        self.write("x.yaml", experiment)
        failing = self.failing("final.safetensors", "rename", 1, kill=True)
        self.pipewright("run", "x.yaml", "--out", "x", code=-9, environment=failing)
        done = self.resume("x", "--set", "pipeline.replicas=4")
        self.assertIn("begins anew", done.err)
        self.assertEqual(harness.Run(self.folder / "x").state(), "done")


if __name__ == "__main__":
    harness.main()
