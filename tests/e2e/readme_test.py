# SPDX-License-Identifier: Apache-2.0
"""What the README says works: its experiment, its commands, its scheme, its pictures; plugin_test.py has the rest."""
import os
import shlex
import subprocess

import harness
import readme
import skips

SOURCE = harness.SOURCE_DIR


def blocks(language):
    return readme.blocks(language, without=readme.PLUGIN)


class Readme(harness.EndToEnd):
    def test_every_command_runs(self):
        """In order, in one folder; the set-up commands are what runs this test."""
        self.write("first.yaml", blocks("yaml")[0])
        (self.folder / "experiments").symlink_to(SOURCE / "experiments")
        for command in "".join(blocks("sh")).splitlines():
            words = shlex.split(command)
            if words[0].startswith("tools/"):
                self.assertTrue(os.access(SOURCE / words[0], os.X_OK), command)
                continue
            if words[0] == "mpirun" or "pipeline.execution=mpi" in words:
                if not skips.has("mpirun"):
                    skips.left_out(command, "mpirun")
                    continue
            if words[0] == "mpirun":
                self.mpirun(words)
                continue
            self.assertEqual("build/pipewright", words[0], command)
            if words[1] == "sweep":  # all 93 runs are the quickstart's own; three will do here
                words += ["--set", "sweep.points=[{label: gpipe, scheme: {name: gpipe}}]"]
            if words[1] in ("table", "plot"):
                words += ["--set", "sweep.points=[{label: gpipe, scheme: {name: gpipe}}]"]
            self.pipewright(*words[1 : words.index(">") if ">" in words else None])
        self.assertTrue((self.folder / "schedule.svg").exists())
        ends = {file.read_bytes() for file in self.folder.glob("runs/*/final.safetensors")}
        self.assertEqual(1, len(ends), "every execution ends with the same bits")

    def mpirun(self, words):
        """As root, with fewer cores than processes: what a test machine has, and the README need not say."""
        allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"]
        started = [harness.BINARY if word == "build/pipewright" else word for word in words]
        done = subprocess.run(
            started, cwd=self.folder, env={**os.environ, **dict.fromkeys(allowed, "1")},
            capture_output=True, text=True, timeout=120,
        )
        self.assertEqual(0, done.returncode, done.stderr)

    def test_its_scheme_trains(self):
        """The C++ block was compiled as it stands into this program."""
        self.write("half.yaml", blocks("yaml")[0].replace("{name: pipedream}", "{name: half_way, part: 0.7}"))
        done = self.readme_program("run", "half.yaml", "--out", "half")
        self.assertEqual(0, done.returncode, done.stderr)
        listed = self.readme_program("list", "schemes").stdout
        self.assertIn("half_way", listed)
        wrong = self.readme_program("check", "half.yaml", "--set", "scheme.part=2")
        self.assertEqual(2, wrong.returncode)

    def readme_program(self, *arguments):
        program = os.environ["PIPEWRIGHT_README_BINARY"]
        return subprocess.run([program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def test_its_pictures_are_the_tools(self):
        self.pipewright("schedule", str(SOURCE / "experiments/quickstart.yaml"), "--set", "name=SpecTrain on four stages",
                        "--set", "scheme={name: spectrain}", "--set", "pipeline.stages=4", "--svg", "spectrain.svg")
        for name in ("spectrain.svg", "spectrain-weights.svg"):
            self.assertEqual((SOURCE / "docs" / name).read_text(), (self.folder / name).read_text(), name)


if __name__ == "__main__":
    harness.main()
