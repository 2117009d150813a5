# SPDX-License-Identifier: Apache-2.0
"""Commands that compute nothing start without LibTorch, and print what they print with it."""

import shutil
import subprocess
from pathlib import Path

import harness
import skips
from harness import BINARY, DATA, EXPERIMENT, FINE, MLP, SOURCE_DIR, changed

WITH_LIBTORCH = Path(BINARY).parent / "with_libtorch" / "pipewright"


class Start(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        if not WITH_LIBTORCH.exists():
            skips.lacks("test-programs")  # a build with sanitizers links one program

    def look(self, *arguments, code=FINE):
        """What a command prints, and whether LibTorch was loaded for it."""
        log = self.folder / "loader"
        done = self.pipewright(
            *arguments, code=code, environment={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)}
        )
        loads = ""
        for file in self.folder.glob("loader.*"):
            loads += file.read_text(errors="replace")
            file.unlink()
        self.assertIn("libpipewright.so", loads)
        return done, "libtorch_cpu.so" in loads

    def whole(self, *arguments):
        """The same command, by the program that always has LibTorch."""
        return subprocess.run(
            [WITH_LIBTORCH, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def assert_starts_without(self, *arguments, code=FINE):
        done, loaded = self.look(*arguments, code=code)
        self.assertFalse(loaded, f"LibTorch is loaded for {' '.join(map(str, arguments))}")
        with_it = self.whole(*arguments)
        self.assertEqual((done.code, done.out, done.err), (with_it.returncode, with_it.stdout, with_it.stderr))
        return done

    def test_what_explains_the_program(self):
        for arguments in (["--help"], ["--version"], ["list"], ["schema"], ["run", "--help"], ["sweep", "--help"]):
            self.assert_starts_without(*arguments)
        self.assert_starts_without("chekc", code=EXPERIMENT)

    def test_the_description_of_every_part(self):
        kind, parts = "", 0
        for line in self.pipewright("list").out.splitlines():
            if not line.startswith(" "):
                kind = {"losses": "loss"}.get(line, line.removesuffix("s")) or kind
                continue
            self.assert_starts_without("describe", kind, line.split()[0])
            parts += 1
        self.assertGreater(parts, 60)

    def test_the_schedule_of_every_scheme_and_experiment(self):
        for line in self.pipewright("list", "schemes").out.splitlines():
            scheme = {"name": line.split()[0]}
            if not line.startswith(" ") or scheme["name"] == "csv_schedule":
                continue
            shared = scheme["name"] in ("amdp", "chimera", "dualpipe")  # two replicas on the same workers
            experiment = changed(MLP, {"scheme": scheme, "pipeline.microbatches": 4, "pipeline.replicas": 1 + shared})
            if scheme["name"] == "amdp":
                experiment["pipeline"]["stages"] = 4
            if scheme["name"] == "data_parallel":
                experiment["pipeline"] = {"replicas": 2}
            self.write("x.yaml", experiment)
            self.assert_starts_without("schedule", "x.yaml", "--svg", "x.svg")
        for file in sorted((SOURCE_DIR / "experiments").glob("*.yaml")):
            self.assert_starts_without("schedule", file)

    def test_tables_and_pictures(self):
        self.write("x.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}, "table": {"rows": "train.seed"}}))
        _, loaded = self.look("sweep", "x.yaml", "--out", "o")
        self.assertTrue(loaded)
        self.assertIn("| 2 ", self.assert_starts_without("table", "x.yaml", "--out", "o").out)
        self.assert_starts_without("report", "x.yaml", "--out", "o")
        if shutil.which("gnuplot"):
            self.assert_starts_without("plot", "x.yaml", "--out", "o")

    def test_what_computes_begins_with_it(self):
        self.write("x.yaml", MLP)
        for arguments in (["check", "x.yaml"], ["doctor"], ["run", "x.yaml", "--out", "o"]):
            _, loaded = self.look(*arguments)
            self.assertTrue(loaded, arguments)

    def test_a_command_that_turns_out_to_need_it_begins_anew(self):
        """A table of trained metrics computes nothing; one of modelled metrics counts the model's operations."""
        hardware = str(SOURCE_DIR / "experiments" / "hardware" / "dgx1-v100.yaml")
        table = {"rows": "train.seed", "metric": "modelled_speedup", "hardware": hardware}
        self.write("x.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1, 2]}}, "table": table}))
        self.pipewright("sweep", "x.yaml", "--out", "o")
        done, loaded = self.look("table", "x.yaml", "--out", "o")
        with_it = self.whole("table", "x.yaml", "--out", "o")
        self.assertTrue(loaded)
        self.assertIn("1.00", done.out)
        self.assertEqual((done.code, done.out, done.err), (with_it.returncode, with_it.stdout, with_it.stderr))

    def test_without_its_other_half(self):
        self.write("x.yaml", MLP)
        alone = shutil.copy(BINARY, self.folder / "alone")
        done = subprocess.run([alone, "run", "x.yaml"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, DATA)
        self.assertEqual(
            done.stderr,
            "the part of the program that has LibTorch: with_libtorch/pipewright is missing; install Pipewright again\n",
        )
        done = subprocess.run([alone, "list", "losses"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, FINE)

    def test_whose_other_half_is_itself(self):
        self.write("x.yaml", MLP)
        shutil.copy(BINARY, self.folder / "pipewright")
        (self.folder / "with_libtorch").mkdir()
        (self.folder / "with_libtorch" / "pipewright").symlink_to("../pipewright")
        done = subprocess.run(
            [self.folder / "pipewright", "check", "x.yaml"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
        )
        self.assertEqual(done.returncode, DATA)
        self.assertIn("with_libtorch/pipewright has none; install Pipewright again", done.stderr)

    def test_arguments_arrive_as_they_are(self):
        name = "a \"b\" 'c' $d\n.yaml"
        self.write(name, MLP)
        arguments = ["check", name, "--set", "name=a  b", "--set", "train.seed=3"]
        done, loaded = self.look(*arguments)
        self.assertTrue(loaded)
        with_it = self.whole(*arguments)
        self.assertEqual((done.out, done.err), (with_it.stdout, with_it.stderr))
        self.assertIn("a  b", done.out)

    def test_what_is_refused_is_refused_without_it(self):
        self.write("wrong.yaml", changed(MLP, {"pipeline.stages": "many", "schem": {"name": "gpipe"}}))
        self.write("sweep.yaml", changed(MLP, {"sweep": {"grid": {"train.seed": [1, -1]}}}))
        for command in ("check", "run", "sweep", "profile", "simulate"):
            self.assert_starts_without(command, "wrong.yaml", code=EXPERIMENT)
            self.assert_starts_without(command, "nowhere.yaml", code=EXPERIMENT)
        for arguments in (["sweep", "sweep.yaml"], ["check", "sweep.yaml"]):
            self.assert_starts_without(*arguments, code=EXPERIMENT)


if __name__ == "__main__":
    harness.main()
