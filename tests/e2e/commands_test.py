# SPDX-License-Identifier: Apache-2.0
"""The commands around training: each explains itself, and names what was meant."""

import json
import pathlib
import re
import subprocess
import textwrap
import xml.etree.ElementTree

import harness
from harness import DATA, EXPERIMENT, MLP, changed

REAL = "dataset: {name: tensors, file: real.csv, split: 1}\nloader: {batch_size: 2}\n"
TWO = "dataset: {name: synthetic, classes: 2}\nmodel: {name: mlp, widths: [8, 1]}\n"
QUADRATIC = "dataset: {name: quadratic}\nmodel: {name: quadratic}\n"  # whose output is the loss
KINDS = {
    "scheme": "schemes",
    "model": "models",
    "dataset": "datasets",
    "codec": "codecs",
    "optimizer": "optimizers",
    "loss": "losses",
    "gradient_rule": "gradient_rules",
    "probe": "probes",
}


class Commands(harness.EndToEnd):
    def commands(self):
        return re.findall(r"^  (\w+) {2,}\S", self.pipewright("--help").out, re.MULTILINE)

    def names(self):
        """All parts, as {plural of the kind: names}, from one `list`."""
        kinds = {}
        for block in self.pipewright("list").out.split("\n\n"):
            plural, *parts = block.strip().splitlines()
            kinds[plural] = [part.split()[0] for part in parts]
        return kinds

    def test_help_everywhere(self):
        commands = self.commands()
        self.assertLessEqual(
            {"run", "sweep", "check", "schedule", "simulate", "stability", "profile", "table", "plot", "report", "timeline", "fetch", "list"}
            | {"describe", "schema", "doctor", "compare", "watch"},
            set(commands),
        )
        for command in commands:
            done = self.pipewright(command, "--help")
            self.assertTrue(done.out.startswith(f"usage: pipewright {command}"), done.out)
            self.assertEqual(done.err, "")
        self.assertEqual(self.pipewright("run", "x.yaml", "-h").out, self.pipewright("run", "--help").out)

    def test_a_schedule_goes_out_and_comes_back(self):
        """Its file has fewer mini-batches than the epoch, in which it goes on."""
        for scheme in ("pipedream", "spectrain", "interlocking"):
            experiment = changed(
                MLP,
                {
                    "scheme": {"name": scheme},
                    "pipeline.stages": 3,
                    "dataset": {"name": "digits"},
                    "loader": {"batch_size": 16, "limit_train": 1200},
                },
            )
            self.write("e.yaml", experiment)
            self.pipewright("schedule", "e.yaml", "--minibatches", "60", "--csv", f"{scheme}.csv")
            read = changed(experiment, {"scheme": {"name": "csv_schedule", "file": f"{scheme}.csv"}})
            self.assert_same_weights(self.train(experiment, scheme), self.train(read, f"{scheme}-read"))

    def test_every_key_of_an_experiment_is_described(self):
        page = self.pipewright("describe", "experiment").out
        keys = re.findall(r"^  (\w+) +\S", page.split("\n\n")[1], re.MULTILINE)
        self.assertEqual(set(keys), set(json.loads(self.pipewright("schema").out)["properties"]))
        for key in keys:
            self.assertIn(key, self.pipewright("describe", key).out)
        sweep = self.pipewright("describe", "sweep").out
        for part in ("points", "zip", "grid"):
            self.assertRegex(sweep, rf"(?m)^  {part}: ")
        self.write("x.yaml", "scheme: {name: gpipe}\n" + sweep[sweep.index("  sweep: ") :].strip())
        self.assertIn("All 12 runs are valid", self.pipewright("check", "x.yaml").out)

    def test_a_kind_of_parts_is_described_by_its_parts(self):
        for kind, plural in KINDS.items():
            page = self.pipewright("describe", kind).out
            for part in self.names()[plural]:
                self.assertRegex(page, rf"(?m)^  {part} ")

    def test_no_command_prints_the_usage(self):
        self.assertIn("pipewright COMMAND", self.pipewright(code=EXPERIMENT).err)
        self.assertRegex(self.pipewright("--version").out, r"^pipewright \d+\.\d+\.\d+(-rc\.\d+)?, LibTorch \d+\.\d+")

    def test_an_unknown_command_or_flag_names_the_nearest(self):
        self.assertRegex(
            self.pipewright("sweeep", code=EXPERIMENT).err,
            r"^there is no command 'sweeep'; did you mean 'sweep'\?",
        )
        self.assertRegex(
            self.pipewright("frobnicate", code=EXPERIMENT).err,
            r"^there is no command 'frobnicate'; known: run, ",
        )
        self.write("x.yaml", MLP)
        for wrong, right in (("--overwrit", "--overwrite"), ("--reusme", "--resume"), ("--sett", "--set")):
            done = self.pipewright("run", "x.yaml", wrong, code=EXPERIMENT)
            self.assertRegex(
                done.err, rf"^unknown option '{wrong}'; did you mean '{right}'\?\nusage: pipewright run "
            )

    def test_arguments_that_are_missing_or_too_many(self):
        self.assertRegex(self.pipewright("run", code=EXPERIMENT).err, r"^FILE is missing\nusage: ")
        self.assertRegex(
            self.pipewright("check", "a", "b", code=EXPERIMENT).err, r"^there are too many arguments\nusage: "
        )
        self.assertRegex(self.pipewright("run", "a.yaml", "--out", code=EXPERIMENT).err, r"out.*\nusage: ")

    def test_list_names_all_kinds(self):
        names = self.names()
        self.assertEqual(sorted(names), sorted([*KINDS.values(), "metrics", "hardware"]))
        self.assertLessEqual({"spectrain", "pipedream", "gpipe", "interlocking"}, set(names["schemes"]))
        alone = self.pipewright("list", "models").out.splitlines()
        self.assertEqual([line.split()[0] for line in alone], names["models"])
        self.assertRegex(self.pipewright("list", "schems", code=EXPERIMENT).err, r"did you mean 'schemes'\?")

    def test_describe_every_part_with_an_example_that_is_accepted(self):
        self.write("path/to/file", "0F0,0B0\n")  # which csv_schedule follows
        self.write("real.csv", "1,2,0.5\n3,4,1.5\n5,6,2.5\n")
        names = self.names()
        for kind, plural in KINDS.items():
            for name in names[plural]:
                page = self.pipewright("describe", kind, name).out
                self.assertTrue(page.startswith(f"{kind} {name}\n"), page)
                self.assertIn("\nOptions\n", page)
                example = page.rsplit("\nExample\n", 1)[1]
                if kind in ("scheme", "optimizer", "loss"):
                    needs = {"output": QUADRATIC, "mse": REAL, "l1": REAL, "binary_cross_entropy": TWO}.get(name, "") if kind == "loss" else ""
                    self.write("x.yaml", textwrap.dedent(example).strip() + "\n" + needs)
                    self.pipewright("check", "x.yaml")
                if "Required" in page or ": required" in page:
                    self.assertRegex(example, r"\w+: path/to/\w+")

    def test_describe_sections_and_what_is_not_there(self):
        for section in ("pipeline", "lr_schedule", "table", "plot", "claims"):
            self.assertIn("\nOptions\n", self.pipewright("describe", section).out)
        self.assertRegex(
            self.pipewright("describe", "scheme", "spektrain", code=EXPERIMENT).err,
            r"did you mean 'spectrain'\?",
        )
        self.assertRegex(
            self.pipewright("describe", "pipelin", code=EXPERIMENT).err, r"did you mean 'pipeline'\?"
        )
        self.assertEqual(self.pipewright("describe", "codec", "svd").out, self.pipewright("describe", "svd").out)
        two = self.pipewright("describe", "quadratic", code=EXPERIMENT).err
        self.assertIn("try `pipewright describe model quadratic` or `pipewright describe dataset quadratic`", two)
        pipeline = self.pipewright("describe", "pipeline").out
        self.assertIn("compression.edges: a list of whole numbers of at least 0", pipeline)

    def test_schema_is_json_and_knows_the_options_of_every_part(self):
        schema = json.loads(self.pipewright("schema").out)
        self.assertIn("draft/2020-12", schema["$schema"])
        names = self.names()
        for kind in ("scheme", "model", "dataset", "optimizer", "loss"):
            branches = {
                branch["if"]["properties"]["name"]["const"]: branch["then"]["properties"]
                for branch in schema["properties"][kind]["allOf"]
            }
            self.assertEqual(sorted(branches), sorted(names[KINDS[kind]]))
            if kind == "scheme":
                self.assertIn("version", branches["spectrain"])
                self.assertIn("width", branches["interlocking"])
        probes = schema["properties"]["probes"]["items"]["allOf"]
        known = [branch["if"]["properties"]["name"]["const"] for branch in probes]
        self.assertEqual(sorted(known), sorted(names["probes"]))
        compression = schema["properties"]["pipeline"]["properties"]["compression"]
        codecs = {branch["if"]["properties"]["name"]["const"]: branch["then"] for branch in compression["allOf"]}
        self.assertEqual(sorted(codecs), sorted(names["codecs"]))
        self.assertLessEqual({"saturate", "edges", "backward", "otherwise"}, set(codecs["fp16"]["properties"]))
        self.assertLessEqual({"sweep", "table", "plot", "profiles", "extends", "pipeline"}, set(schema["properties"]))

    def test_doctor_tells_of_the_machine(self):
        page = self.pipewright("doctor").out
        for subject in ("pipewright", "LibTorch", "CUDA", "MPI", "cores", "memory", "data"):
            self.assertRegex(page, rf"(?m)^{subject} +(ok|absent) +\S")

    def test_doctor_says_of_cuda_what_it_found(self):
        page = self.pipewright("doctor").out
        root = re.search(r"(?m)^LibTorch .* in (/\S+)", page)[1]
        line = re.search(r"(?m)^CUDA .*", page)[0]
        library = pathlib.Path(root, "lib/libtorch_cuda.so")
        if not library.exists():
            self.assertRegex(line, "^CUDA +absent +LibTorch has no libtorch_cuda.so")
            return
        needed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
        missing = re.findall(r"(\S+) => not found", needed)
        if missing:
            self.assertRegex(line, r"^CUDA +absent +libtorch_cuda\.so is there but cannot be loaded \(\S")
        else:
            self.assertRegex(line, r"^CUDA +(ok +\d+ device|absent +libtorch_cuda\.so is )")

    def test_check_tells_of_data_schedule_and_stages(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "pipedream"}}))
        page = self.pipewright("check", "x.yaml").out
        self.assertRegex(page, r"data +96 training and 32 test samples, 6 mini-batches of 16")
        self.assertRegex(page, r"schedule +valid: 2 workers")
        self.assertRegex(page, r"total +7370")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["x.yaml"])

    def test_check_of_a_sweep_plans_every_run(self):
        points = [
            {"label": "waits", "scheme": {"name": "gpipe"}, "pipeline.microbatches": 4},
            {"label": "runs on", "scheme": {"name": "pipedream"}},
        ]
        sweep = {"points": points, "grid": {"train.seed": [1, 2, 3]}}
        self.write("x.yaml", changed(MLP, {"sweep": sweep}))
        page = self.pipewright("check", "x.yaml").out
        self.assertRegex(page, r"(?m)^ waits +3 +2 +2 +6 +\d+ +1 +0 / 0 ")
        self.assertRegex(page, r"(?m)^ runs on +3 +2 +2 +6 +\d+ +2 +0…1 / 0…1 ")
        self.assertRegex(page, r"(?m)^All 6 runs are valid\b")

        points[0] |= {"pipeline.microbatches": 17, "loader.batch_size": 20, "loader.drop_last": False}
        self.write("y.yaml", changed(MLP, {"sweep": sweep}))
        self.assert_errors(
            self.pipewright("check", "y.yaml", code=EXPERIMENT),
            r"the last mini-batch has 16 samples for 17 micro-batches; .* \(run 'waits'\)$",
        )
        self.write("z.yaml", changed(MLP, {"sweep": sweep, "dataset": {"name": "mnist", "root": "absent"}}))
        self.assertEqual(self.pipewright("check", "z.yaml", code=DATA).err.count("absent"), 1)

    def test_schedule_prints_and_draws(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "spectrain"}}))
        page = self.pipewright(
            "schedule",
            "x.yaml",
            "--svg",
            "s.svg",
            "--csv",
            "s.csv",
            "--trace",
            "s.json",
            "--minibatches",
            "5",
        ).out
        self.assertRegex(page, r"worker 0  F0 F1")
        self.assertRegex(page, r"stage +D +stale F")
        for file in ("s.svg", "s-weights.svg"):
            xml.etree.ElementTree.parse(self.folder / file)
        self.assertIn("traceEvents", json.loads((self.folder / "s.json").read_text()))
        self.assertRegex((self.folder / "s.csv").read_text(), r"^worker,index,kind,stage,")
        self.assert_errors(
            self.pipewright("schedule", "x.yaml", "--minibatches", "0", code=EXPERIMENT),
            r"--minibatches is 0; expected at least 1",
        )

    def test_too_few_microbatches_are_remarked_on(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "zb_h1"}, "pipeline.stages": 4}))
        page = self.pipewright("schedule", "x.yaml").out
        self.assertRegex(page, r"note: 1 micro-batch for 4 stages: workers are idle in \d+ % .*microbatches: 8")
        self.assertNotIn("note:", self.pipewright("schedule", "x.yaml", "--set", "pipeline.microbatches=8").out)
        self.assertNotIn("note:", self.pipewright("schedule", "x.yaml", "--set", "scheme={name: pipedream}").out)

    def test_drawings_name_the_scheme_and_what_was_chosen_of_it(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "spectrain", "version": 2}}))
        self.pipewright("schedule", "x.yaml", "--svg", "s.svg")
        for file in ("s.svg", "s-weights.svg"):
            self.assertIn("x: spectrain, version 2", (self.folder / file).read_text())

    def test_recomputation_shows_and_says_where_it_is_of_no_use(self):
        self.write("x.yaml", changed(MLP, {"scheme": {"name": "gpipe"}, "pipeline.recompute": "except_last"}))
        for command in ("check", "schedule"):
            self.assertRegex(self.pipewright(command, "x.yaml").out, r"note: .*nothing is recomputed")
            page = self.pipewright(command, "x.yaml", "--set", "pipeline.microbatches=2").out
            self.assertNotIn("nothing is recomputed", page)
        self.assertRegex(page, r"F0\.0 F0\.1 B0\.1-+ r0\.0 B0\.0")
        self.assertRegex(page, r"r recompute")


if __name__ == "__main__":
    harness.main()
