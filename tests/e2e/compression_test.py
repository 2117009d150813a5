"""Compressed edges: the same bytes in every execution, counted, taken up again, said in words."""

import shutil

import harness
from harness import CNN, changed

FP16 = changed(CNN, {"pipeline.compression": {"name": "fp16", "backward": {"name": "bf16"}}, "scheme": {"name": "gpipe"}})
COUNTED = ("from", "to", "minibatches", "messages", "value_bytes", "sent_bytes", "ratio")


def counted(run):
    return [{column: row[column] for column in COUNTED} for row in run.rows("traffic.csv")]


class Compression(harness.EndToEnd):
    def test_all_executions_send_and_learn_the_same(self):
        serial = self.train(FP16, "serial")
        executions = ["threads"] + (["mpi"] if shutil.which("mpirun") else [])
        for execution in executions:
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

    def test_tables_show_what_crossed(self):
        self.write("x.yaml", FP16 | {"sweep": {"grid": {"pipeline.compression": [{"name": "none"}, {"name": "fp16"}]}}})
        self.pipewright("sweep", "x.yaml", "--out", "s")
        table = {}
        for metric in ("sent_ratio", "sent_mib", "required_mib_per_s", "codec_share"):
            rows = self.pipewright("table", "x.yaml", "--out", "s", "--format", "csv", "--metric", metric).out
            table[metric] = [float(row.split(",")[3]) for row in rows.splitlines()[1:3]]
        self.assertEqual(table["sent_ratio"][0], 1)
        self.assertAlmostEqual(table["sent_ratio"][1], 0.5, delta=0.03)
        self.assertAlmostEqual(table["sent_mib"][1] / table["sent_mib"][0], 0.5, delta=0.03)
        self.assertEqual(table["codec_share"][0], 0)
        self.assertGreater(table["codec_share"][1], 0)
        self.assertGreater(table["required_mib_per_s"][0], 0)


if __name__ == "__main__":
    harness.main()
