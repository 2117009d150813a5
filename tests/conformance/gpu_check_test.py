# SPDX-License-Identifier: Apache-2.0
"""tools/gpu-check from end to end on this CPU, in small, beside PyTorch: every part writes its results."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

SOURCE, BUILD = (Path(os.environ[f"PIPEWRIGHT_{name}_DIR"]).absolute() for name in ("SOURCE", "BUILD"))
PROGRAMS = ("with_libtorch/pipewright", "tests/gpu_tests", "tests/bench/device_bench")
RUN = '#!/bin/sh\nprogram=$(dirname "$0")/bin/$1\nshift\nexec "$program" "$@"\n'
MODELS, KINDS = {"vgg16_bn", "gpt", "resnet50"}, {("float32", "fast"), ("bfloat16", "repeatable")}


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out, bundle = Path(folder.name, "out"), Path(folder.name, "bundle")
        (bundle / "bin").mkdir(parents=True)
        for program in PROGRAMS:
            (bundle / "bin" / Path(program).name).symlink_to(BUILD / program)
        (bundle / "experiments").symlink_to(SOURCE / "experiments")
        for name, text in {"run": RUN, "torch-version": "this\n", "commit": "this\n"}.items():
            (bundle / name).write_text(text)
        (bundle / "run").chmod(0o755)
        self.check = shutil.copy(SOURCE / "tools/gpu-check", bundle)
        shutil.copy(SOURCE / "tests/bench/gpu_peer.py", bundle)

    def cases(self, file):
        return [json.loads(line) for line in (self.out / file).read_text().splitlines()]

    def test_every_part_writes_its_results(self):
        done = subprocess.run([self.check, "--rehearse", "--seconds", "3000", self.out], capture_output=True, text=True,
                              env=os.environ | {"PIPEWRIGHT_PYTHON": sys.executable})  # fmt: skip
        said = done.stdout + done.stderr + (self.out / "log.txt").read_text()
        self.assertEqual(done.returncode, 0, said)
        self.assertNotIn("cut after", said)
        self.assertIn("All parts are fine.", (self.out / "summary.txt").read_text())
        tests = (self.out / "tests.txt").read_text()
        self.assertIn("from 2 test suites ran", tests)  # all skip here
        self.assertIn("tensors are equal", tests)

        for file, models, kinds, forms in (("steps.jsonl", MODELS, KINDS, ("defaults", "graph")),
                                           ("compiled.jsonl", {"gpt"}, {("bfloat16", "fast")}, ("compiled",))):  # fmt: skip
            cases = self.cases(file)
            told = Counter((case["kind"], case["model"], case["precision"], case["numerics"]) for case in cases)
            self.assertEqual(told, Counter((kind, model, *each) for kind in ("step", "bits") for model in models for each in kinds))
            for case in cases:
                if case["kind"] == "bits":
                    self.assertEqual([case[f"differing_in_{way}"] for way in ("serial", "one_stream", "own_streams")], [0, 0, 0])
                    continue
                for way in ("plain_ms", "serial_ms", *(f"pytorch_{form}_ms" for form in forms)):
                    self.assertGreater(case[way][0], 0, case)
        self.assertEqual({case["model"] for case in self.cases("memory.jsonl") if min(case["measured_bytes"]) > 0}, MODELS)
        self.assertTrue(all("error" not in case for case in self.cases("codecs.jsonl")))
        with open(self.out / "recipe.csv", newline="", encoding="utf-8") as file:
            runs = Counter(row["train.seed"] for row in csv.DictReader(file) if row["state"] == "done")
        self.assertEqual(runs, dict.fromkeys("123", 11))
        self.assertLessEqual(len(list(self.out.iterdir())), 8)  # so many files come back from a lent machine


if __name__ == "__main__":
    unittest.main()
