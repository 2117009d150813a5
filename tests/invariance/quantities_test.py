# SPDX-License-Identifier: Apache-2.0
"""Every quantity that a command writes has a test that would notice a wrong one; quantities.csv says which.

The quantities are taken from the program itself: what it writes as JSON, CSV, YAML and SQLite, and what it lists and
describes. One that quantities.csv lacks is a failure, and so is a row whose quantity or test is not there any more."""

import csv
import json
import re
import sqlite3
from pathlib import Path

import invariance
from invariance import HARDWARE, MLP, Invariance, changed, harness

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
METRICS = ["accuracy", "top5", "matthews", "perplexity"]
# A small training in which everything is written that a training can write.
EVERYTHING = changed(
    MLP,
    {
        "name": "everything",
        "scheme": {"name": "interlocking"},
        "pipeline.microbatches": 2,
        "pipeline.replicas": 2,
        "pipeline.execution": "threads",
        "pipeline.compression": {"name": "uniform", "bits": 8},
        "pipeline.gradient_compression": {"name": "powersgd", "rank": 1},
        "metrics": METRICS,
        "probes": [{"name": "sharpness", "every": 1, "samples": 8}],
        "train.epochs": 1,
        "train.checkpoint": {"every": 0},
        "loader.validation": 24,
        "dataset": {"name": "synthetic", "classes": 2, "train": 96, "test": 32, "shape": [64]},
        "model.widths": [64, 12, 12, 12, 2],
        "output.trace": True,
    },
)


def paths_of(value, path=""):
    """The paths of all leaves of a JSON value, and of what is empty; the items of a list are `[]`."""
    if not value and isinstance(value, (dict, list)):
        yield path
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from paths_of(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for each in value:
            yield from paths_of(each, path + "[]")
    else:
        yield path


class Quantities(Invariance):
    """What each command writes, as {command: {quantity}}."""

    def written(self):
        # `matthews` is for two classes.
        base = {key: value for key, value in EVERYTHING.items()}
        sweep = base | {"sweep": {"grid": {"train.seed": [1, 2]}}, "table": {"rows": "scheme.name"}}
        self.write("s.yaml", sweep)
        self.write("h.yaml", HARDWARE | {"buses": [{"name": "b", "devices": [0, 1], "bandwidth_gb_per_s": 4}], "host": {"bandwidth_gb_per_s": 4}})
        self.write("hessian.json", {"matrix": [[2, 1, 0], [1, 2, 1], [0, 1, 2]]})
        self.pipewright("sweep", "s.yaml", "--out", "sw", "--jobs", 1)
        run = harness.Run(min((self.folder / "sw").glob("*/run.json")).parent)
        failed = self.train(changed(base, {"optimizer.lr": 1e30, "train.precision": "float32", "model.activation": "relu"}), "failed", code=harness.NOT_FINITE)
        quantities = {"run": self.of_run(run) | self.of_json(failed.path / "run.json", "run.json")}
        quantities["sweep"] = self.of_json(run.path / "point.json", "point.json", opaque=("varied",)) | self.of_database()
        quantities["table"] = self.of_table()
        quantities["describe"] = self.of_probes()
        one = ("s.yaml", "--hardware", "h.yaml")
        self.pipewright("simulate", *one, "--json", "one.json")
        self.pipewright("simulate", *one, "--sweep", "--json", "all.json", "--csv", "all.csv")
        moved = ("--set", "scheme={name: gpipe}", "--set", "pipeline.offload=always")
        self.pipewright("simulate", *one, *moved, "--json", "moved.json")
        quantities["simulate"] = self.of_json(self.folder / "one.json", "--json") | self.of_json(self.folder / "moved.json", "--json")
        quantities["simulate --sweep"] = self.of_json(self.folder / "all.json", "--json", opaque=("varied",)) | {
            f"--csv {column}" for column in self.header("all.csv") if column != "train.seed"
        }
        self.write("costs.yaml", {"forward": 1})
        few = ("s.yaml", "--costs", "costs.yaml", "--set", "pipeline.replicas=1", "--tries", 1000)
        self.pipewright("synthesize", *few, "--json", "found.json")
        self.pipewright("synthesize", *few, "--curve", "curve.csv")
        quantities["synthesize"] = self.of_json(self.folder / "found.json", "--json") | {
            f"--curve {column}" for column in self.header("curve.csv")
        }
        flags = ("s.yaml", "--point", "1", "--run", run.path, "--hessian", "hessian.json")
        self.pipewright("stability", *flags, "--json", "st.json")
        table = self.pipewright("stability", *flags, "--format", "csv").out.splitlines()[0].split(",")
        quantities["stability"] = self.of_json(self.folder / "st.json", "--json", opaque=("optimizer",)) | {
            f"--format csv {column}" for column in table
        }
        self.pipewright("timeline", run.path, "--json", "t.json")
        quantities["timeline"] = self.of_json(self.folder / "t.json", "--json")
        self.pipewright("profile", "s.yaml", "--out", "p.yaml", "--repetitions", 1)
        lines = (self.folder / "p.yaml").read_text().splitlines()
        quantities["profile"] = {line.strip().removeprefix("- ").partition(":")[0] for line in lines}
        self.pipewright("schedule", "s.yaml", "--csv", "schedule.csv")
        quantities["schedule"] = {f"--csv {column}" for column in self.header("schedule.csv")}
        return quantities

    def header(self, file):
        with open(self.folder / file, newline="") as opened:
            return next(csv.reader(opened))

    def of_json(self, file, name, opaque=()):
        found = {path for path in paths_of(json.loads(Path(file).read_text()))}
        hidden = {re.sub(rf"(^|.*\.)({'|'.join(opaque)})\..*", r"\1\2", path) for path in found} if opaque else found
        return {f"{name} {path}" for path in hidden}

    def of_run(self, run):
        quantities = self.of_json(run.path / "run.json", "run.json", opaque=("contents", "final"))
        for file in ("epochs.csv", "steps.csv", "traffic.csv", "probes.csv"):
            header = self.header(run.path / file)
            quantities |= {f"{file} {re.sub(r'loss_[0-9]+', 'loss_<stage>', column)}" for column in header}
        known = self.pipewright("check", "s.yaml", "--set", "metrics=[nonsense]", code=harness.EXPERIMENT).err
        metrics = re.search(r"known: ([^;\n]*)", known)
        self.assertIsNotNone(metrics, known)
        quantities |= {f"epochs.csv test_{metric}" for metric in metrics[1].split(", ")}
        return quantities

    def of_database(self):
        database = sqlite3.connect(self.folder / "sw/results.sqlite")
        quantities = set()
        for name in ("runs", "epochs", "points", "results", "curves"):
            for column in database.execute(f"SELECT name FROM pragma_table_info('{name}')"):
                quantities.add(f"results.sqlite {name}.{column[0]}")
        database.close()
        metrics = {name for name in quantities if name.startswith("results.sqlite curves.")}
        return {name for name in quantities if name not in metrics or name.endswith(("epoch", "point", "folder"))}

    def of_table(self):
        said = self.pipewright("table", "s.yaml", "--out", "sw", "--format", "csv").out
        quantities = {f"--format csv {column}" for column in said.splitlines()[0].split(",")}
        known = self.pipewright(
            "table", "s.yaml", "--out", "sw", "--hardware", "h.yaml", "--metric", "modelled_", code=harness.EXPERIMENT
        ).err
        modelled = re.findall(r"modelled_\w+", known.split("'modelled_'")[1])
        self.assertGreater(len(set(modelled)), 5, known)
        return quantities | {f"--hardware {name}" for name in modelled}

    def of_probes(self):
        quantities = set()
        for line in self.pipewright("list", "probes").out.splitlines():
            probe = line.split()[0]
            lines = self.pipewright("describe", "probe", probe).out.partition("\nQuantities\n")[2].partition("\nExample")[0]
            for names in re.findall(r"(?m)^  (\w.*)$", lines):
                quantities |= {f"probe {probe}.{name}" for name in names.split(", ")}
        return quantities

    def test_all_have_a_test_that_exists(self):
        with open(HERE / "quantities.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        listed = {(row["command"], row["quantity"]) for row in rows}
        self.assertEqual(len(listed), len(rows), "a quantity stands there twice")
        written = {(command, name) for command, names in self.written().items() for name in names}
        self.assertEqual(sorted(written - listed), [], "these have no row in quantities.csv")
        self.assertEqual(sorted(listed - written - optional_of_profiles()), [], "nothing writes these any more")
        tests = declared_tests()
        for row in rows:
            self.assertTrue(row["test"].split(), row)
            for name in row["test"].split():
                self.assertIn(name, tests, f"{row['command']} {row['quantity']}")


def optional_of_profiles():
    """The keys of a profile that docs/formats/profile.md calls optional."""
    page = (TESTS.parent / "docs/formats/profile.md").read_text(encoding="utf-8")
    return {("profile", key) for key in re.findall(r"(?m)^\| `(\w+)` \| [^|]*optional \|", page)}


def declared_tests():
    """The names of all tests: `Suite.Case` of C++, `<module>.Class.test` of Python, `cases/…` of cases."""
    names = {f"cases/{path.relative_to(TESTS / 'cases')}" for path in (TESTS / "cases").rglob("*.case")}
    for folder in ("unit", "oracle"):
        for path in (TESTS / folder).rglob("*_test.cpp"):
            found = re.findall(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(encoding="utf-8"))
            names |= {".".join(each) for each in found}
    for path in [*(TESTS / "e2e").glob("*_test.py"), *HERE.glob("*_test.py"), *(TESTS / "conformance").glob("*_test.py")]:
        suite = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"class (\w+)\(", line):
                suite = found[1]
            if found := re.match(r"    def (test_\w+)\(", line):
                names.add(f"{path.stem.removesuffix('_test')}.{suite}.{found[1]}")
    return names


class Fixtures(Invariance):
    """What tests and documents say that a run has left is what a run leaves."""

    def test_of_tests_have_only_quantities_that_probes_have(self):
        known = Quantities.of_probes(self)
        row = re.compile(r"(?m)(?:^|[\"\\n])\d+,\d+,\d*,([a-z_]+),([a-z_]+),-?[\d.]")
        sources = [path for kind in ("*.py", "*.cpp", "*.case") for path in TESTS.rglob(kind)]
        found = [(path, *names) for path in sources for names in row.findall(path.read_text(encoding="utf-8"))]
        self.assertGreater(len(found), 20)
        for path, probe, quantity in found:
            self.assertIn(f"probe {probe}.{quantity}", known, path)

    def test_of_documents_have_only_quantities_that_probes_have(self):
        known = Quantities.of_probes(self)
        root = TESTS.parent
        pages = [root / "README.md"] + [path for path in root.rglob("*.md") if "build" not in path.parts]
        pages += [*(root / "experiments").rglob("*.yaml"), *(root / "examples").rglob("*.yaml")]
        for page in pages:
            for probe, quantity in re.findall(r"\bprobe\.([a-z_]+)\.([a-z_]+)", page.read_text(encoding="utf-8")):
                self.assertIn(f"probe {probe}.{quantity}", known, page)

    def test_of_cases_hold_nothing_that_the_program_never_writes(self):
        known = Quantities.of_probes(self)
        for path in sorted((TESTS / "cases").rglob("*.case")):
            for name, lines in files_of(path):
                with self.subTest(f"{path.relative_to(TESTS)}: {name}"):
                    self.check(Path(name).name, lines, known)

    def check(self, name, lines, known):
        if name == "probes.csv":
            self.assertEqual(lines[0], "epoch,minibatch,stage,probe,quantity,value")
            for row in csv.DictReader(lines):
                self.assertIn(f"probe {row['probe']}.{row['quantity']}", known)
        columns = {
            "epochs.csv": "epoch,train_loss,test_loss,test_accuracy,lr,seconds,samples_per_second",
            "steps.csv": "epoch,minibatch,loss",
            "traffic.csv": "from,to,from_worker,to_worker,minibatches,messages,value_bytes,sent_bytes,ratio,encode_seconds,"
            "decode_seconds,train_seconds,required_bytes_per_second,kind",
        }
        if name in columns:
            further = lines[0].removeprefix(columns[name])
            self.assertRegex(further, r"^(,test_(top5|matthews|perplexity|bleu|mae)|,loss_\d+)*$")
        if name in ("run.json", "point.json"):
            with open(HERE / "quantities.csv", newline="", encoding="utf-8") as table:
                keys = {row["quantity"].removeprefix(f"{name} ") for row in csv.DictReader(table)}
            for key in json.loads("\n".join(lines)):
                self.assertIn(key, keys)


def files_of(case):
    """The files that a case writes for its commands: name and lines of each."""
    name, lines = None, []
    for line in case.read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            if name:
                yield name, [each for each in lines if each.strip()]
            name, lines = (line.removeprefix("=== file ") if line.startswith("=== file ") else None), []
        elif name:
            lines.append(line)
    if name:
        yield name, [each for each in lines if each.strip()]


if __name__ == "__main__":
    invariance.main()
