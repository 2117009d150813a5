# SPDX-License-Identifier: Apache-2.0
"""`stability` beside a run: measured sharpness against edges, and runs that it refuses."""

import csv
import io
import json

import harness
from harness import CNN, DATA, EXPERIMENT, changed

EXPERIMENT_FILE = changed(CNN, {"scheme": {"name": "pipedream"}, "train.epochs": 1})
HEADER = "epoch,minibatch,stage,probe,quantity,value\n"


class Stability(harness.EndToEnd):
    def stability(self, *arguments, code=harness.FINE):
        return self.pipewright("stability", "x.yaml", *arguments, code=code)

    def run_with(self, rows, changes=None):
        """A run of the experiment, beside which a probe has written these rows."""
        self.write("x.yaml", changed(EXPERIMENT_FILE, changes or {}))
        self.pipewright("run", "x.yaml", "--out", "run")
        if rows is not None:
            (self.folder / "run/probes.csv").write_text(HEADER + rows)

    def test_measured_sharpness_stands_beside_the_edges(self):
        self.run_with("0,0,0,sharpness,largest,1\n0,5,0,sharpness,largest,100\n0,5,2,sharpness,largest,100\n")
        done = self.stability("--run", "run")
        self.assertEqual(
            done.out.splitlines()[-1],
            "At the curvature of this run (lr 0.02, epoch 0, mini-batch 5), lr 0.02 × λ 100 = 2 is past stage 0's edge "
            "0.05125 (delay 2, momentum 0.9); stage 2 (delay 0) allows 3.8; the measured stages would be stable up to "
            "lr 0.0005125.",
        )
        self.assertIn("training drifts to the edge of stability by itself", done.out)
        self.assertIn("curvature of this run (lr 0.02, epoch 0, mini-batch 5)", done.out)
        self.assertIn("largest stable lr at that curvature", done.out)
        stages = json.loads(self.stability("--run", "run", "--format", "json").out)["stages"]
        self.assertEqual([stage.get("curvature") for stage in stages], [100, None, 100])

    def test_adam_is_measured_preconditioned(self):
        self.run_with(
            "0,5,0,sharpness,largest,1\n0,5,0,sharpness,preconditioned,4000\n0,5,,sharpness,preconditioned,5000\n",
            {"optimizer": {"name": "adam", "lr": 0.001}},
        )
        out = self.stability("--run", "run").out
        self.assertIn("lr 0.001 × λ 4000 = 4 is past stage 0's edge 0.5125 (delay 2, momentum 0.9)", out)
        self.assertIn("curvature of the whole model: 5000\n", out)

    def test_a_sweep_has_the_edges_of_its_points(self):
        sweep = {"grid": {"scheme.name": ["pipedream", "gpipe"], "optimizer.lr": [0.1, 0.2], "train.seed": [1, 2]}}
        self.write("x.yaml", changed(EXPERIMENT_FILE, {"sweep": sweep}))
        done = self.stability("--sweep", "--json", "f.json", "--csv", "f.csv")
        points = json.loads((self.folder / "f.json").read_text())["points"]
        self.assertEqual([point["points"] for point in points], [2, 2, 2, 2], "seeds have one row")
        rows = list(csv.DictReader(io.StringIO((self.folder / "f.csv").read_text())))
        for number, (point, row) in enumerate(zip(points, rows)):
            one = json.loads(self.stability("--point", str(1 + 2 * number), "--format", "json").out)
            edges = [stage["edge"] for stage in one["stages"]]
            self.assertEqual(point["edge"], min(edges))
            self.assertEqual(point["stage"], edges.index(min(edges)))
            self.assertEqual(point["forward_delay"], one["stages"][point["stage"]]["forward_delay"])
            self.assertEqual(float(row["edge"]), point["edge"])
        self.assertIn("tolerated by gpipe (lr × curvature up to 3.8)", done.out)

    def test_a_run_of_another_experiment_is_refused(self):
        self.run_with("0,5,0,sharpness,largest,1\n")
        self.assertRegex(
            self.stability("--run", "run", "--set", "optimizer.lr=0.5", code=EXPERIMENT).err,
            r"^--run run is a run of another experiment: optimizer\.lr 0\.02 → 0\.5; expected one of this file, or "
            r"run/experiment\.yaml as the file\n$",
        )

    def test_a_run_without_sharpness_is_refused(self):
        self.run_with(None)
        self.assertRegex(self.stability("--run", "run", code=DATA).err, r"^run: the run has no probes\.csv; expected")
        (self.folder / "run/probes.csv").write_text(HEADER + "0,5,0,norms,gradient,1\n")
        self.assertRegex(
            self.stability("--run", "run", code=DATA).err, r"^run/probes\.csv: has no sharpness; expected"
        )
        (self.folder / "run/probes.csv").write_text("a,b\n")
        self.assertRegex(self.stability("--run", "run", code=DATA).err, r"^run/probes\.csv:1:1: is no header of probes\.csv")
        (self.folder / "run/probes.csv").write_text(HEADER + "0,5,7,sharpness,largest,1\n")
        self.assertRegex(self.stability("--run", "run", code=DATA).err, r"measures stage 7; expected stages 0 to 2")

    def test_no_run_is_refused(self):
        self.write("x.yaml", EXPERIMENT_FILE)
        self.assertRegex(self.stability("--run", "run", code=EXPERIMENT).err, r"^--run run holds no run; expected")

    def test_formats_agree(self):
        self.write("x.yaml", EXPERIMENT_FILE)
        value = json.loads(self.stability("--format", "json", "--json", "f.json").out.splitlines()[0])
        self.assertEqual(value, json.loads((self.folder / "f.json").read_text()))
        rows = list(csv.DictReader(io.StringIO(self.stability("--format", "csv").out)))
        self.assertEqual([float(row["edge"]) for row in rows], [stage["edge"] for stage in value["stages"]])
        self.assertEqual([int(row["forward_delay"]) for row in rows], [2, 1, 0])
        self.assertEqual(value["optimizer"]["name"], "sgd")

    def test_every_scheme_has_edges(self):
        for scheme in self.pipewright("list", "schemes").out.splitlines():
            name = scheme.split()[0]
            if name == "csv_schedule":
                continue
            stages = {"data_parallel": 1, "amdp": 4}.get(name, 2)
            shape = {"pipeline.stages": stages, "pipeline.microbatches": 2}
            if name in ("amdp", "chimera", "dualpipe"):
                shape["pipeline.replicas"] = 2
            self.write("x.yaml", changed(EXPERIMENT_FILE, {"scheme": {"name": name}} | shape))
            for stage in json.loads(self.stability("--format", "json").out)["stages"]:
                self.assertGreater(stage["edge"], 0, name)


if __name__ == "__main__":
    harness.main()
