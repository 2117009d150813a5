# SPDX-License-Identifier: Apache-2.0
"""tools/bundle with this build's program, its launcher, and tools/gpu-check with a stand-in for programs and GPU."""

import os
import re
import subprocess
import tarfile

import harness

TOOLS = harness.SOURCE_DIR / "tools"
PROGRAM = harness.Path(harness.BINARY).parent / "with_libtorch/pipewright"
SYSTEM = r"/(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv))\.so"  # parts of the C library


class Scripts(harness.EndToEnd):
    def run_script(self, *command, code=0, **environment):
        cleared = ("Torch_DIR", "PIPEWRIGHT_PYTHON", "LD_LIBRARY_PATH")
        kept = {name: value for name, value in os.environ.items() if name not in cleared}
        done = subprocess.run(list(map(str, command)), env=kept | environment, cwd=self.folder, capture_output=True, text=True,
                              timeout=harness.SECONDS_LIMIT, check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Bundle(Scripts):
    def build_folder(self):
        """This build's program, and the smallest programs in the place of the others."""
        build = self.folder / "build"
        for name in ("with_libtorch/pipewright", "tests/gpu_tests", "tests/bench/device_bench", "tests/bench/codec_bench"):
            (build / name).parent.mkdir(parents=True, exist_ok=True)
            (build / name).symlink_to(PROGRAM if "pipewright" in name else "/bin/true")
        return build

    def test_needs_nothing_but_its_wheel_and_the_c_library(self):
        self.run_script(TOOLS / "bundle", "--from", self.build_folder(), "out/bundle.tar.gz")
        with tarfile.open(self.folder / "out/bundle.tar.gz") as archive:
            archive.extractall(self.folder, filter="data")
        (self.folder / "build/with_libtorch/pipewright").unlink()
        bundle = self.folder / "pipewright-bundle"
        torch = re.search(r"libtorch_cpu\.so => (\S+)/lib/libtorch_cpu\.so", self.run_script("ldd", PROGRAM))[1]
        self.run_script(bundle / "run", "pipewright", "doctor", Torch_DIR=torch, LD_DEBUG="files", LD_DEBUG_OUTPUT="loader")
        processes = [re.findall(r"calling init: (\S+)", file.read_text()) for file in self.folder.glob("loader.*")]
        [loaded] = [files for files in processes if f"{torch}/lib/libtorch_cpu.so" in files]
        ours = (f"{bundle}/lib/", f"{os.path.dirname(torch)}/")
        self.assertEqual([], [file for file in loaded if not file.startswith(ours) and not re.search(SYSTEM, file)])
        self.run_script(bundle / "run", "gpu_tests", Torch_DIR=torch)
        self.assertTrue((bundle / "experiments/spectrain/vgg16.yaml").exists())
        self.assertTrue(all(os.access(bundle / script, os.X_OK) for script in ("gpu-check", "gpu_peer.py")))

    def test_of_a_folder_without_the_programs_is_refused(self):
        self.assertIn("tools/bundle ARCHIVE.tar.gz", self.run_script(TOOLS / "bundle", "bundle.zip", code=2))
        self.assertIn("has no with_libtorch", self.run_script(TOOLS / "bundle", "--from", ".", "bundle.tar.gz", code=1))
        (self.build_folder() / "tests/bench/codec_bench").unlink()
        said = self.run_script(TOOLS / "bundle", "--from", "build", "bundle.tar.gz", code=1)
        self.assertIn("build has no tests/bench/codec_bench; build the target codec_bench", said)
        self.assertFalse((self.folder / "bundle.tar.gz").exists())

    def test_another_torch_and_what_is_absent_are_refused(self):
        torch = self.write("site/torch/__init__.py", "raise SystemExit('torch must not be imported')").parent
        self.write("site/torch/version.py", "__version__ = '2.1'\n")
        self.write("site/torch/lib/libtorch_cpu.so", "")
        self.write("bundle/torch-version", "2.0+cu0\n")
        self.write("bundle/bin/says", '#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n').chmod(0o755)
        launch = self.write("bundle/run", (TOOLS / "run-bundle").read_text())
        launch.chmod(0o755)
        self.assertIn("is torch '2.1', but the bundle was built with '2.0+cu0'",
                      self.run_script(launch, "says", code=2, PYTHONPATH=str(torch.parent)))  # fmt: skip
        self.write("bundle/torch-version", "2.1\n")
        said = self.run_script(launch, "says", "a", "b c", PYTHONPATH=str(torch.parent))
        self.assertEqual(f"{self.folder}/bundle/lib:{torch}/lib a b c\n", said)
        self.assertIn("there is no program 'dances'; expected one of: says", self.run_script(launch, "dances", code=2))
        self.assertIn("has no torch", self.run_script(launch, "says", code=2, PIPEWRIGHT_PYTHON="/nowhere/python"))
        self.assertIn("has no lib/libtorch_cpu.so", self.run_script(launch, "says", code=2, Torch_DIR="/nowhere"))


class GpuCheck(Scripts):
    """With a `run` and a Python that say what they are asked for, and play a fault that a test asks for.

    tests/conformance/gpu_check_test.py has it from end to end."""

    def check(self, fault="", *arguments, code=0):
        for name in ("torch-version", "commit"):
            self.write(f"bundle/{name}", "1\n")
        script = self.write("bundle/gpu-check", (TOOLS / "gpu-check").read_text())
        run = self.write("bundle/run", f'#!/bin/sh\necho "asked $*"\ncase "$*" in\n{fault}\nesac\n')
        for file in (script, run):
            file.chmod(0o755)
        return self.run_script(script, *arguments, "out", code=code, PIPEWRIGHT_PYTHON=str(run))

    def asked(self, file):
        return re.findall("asked (.*)", (self.folder / "out" / file).read_text())

    def test_the_most_important_parts_come_first_and_each_has_a_file(self):
        said = self.check("", "--cifar10", ".")
        files = ["tests.txt"] * 3 + ["steps.jsonl"] * 8 + ["tests.txt"] * 3 + ["memory.jsonl"] * 3 + ["codecs.jsonl", "compiled.jsonl"] + ["log.txt"] * 3
        self.assertEqual(files, re.findall(r"(?m)^(\S+): .*: \d+ s$", said))
        self.assertIn("--rounds 2 --model vgg16_bn --precision bfloat16 --numerics repeatable", self.asked("steps.jsonl")[0])
        self.assertIn("--rounds 1 --model gpt --precision bfloat16 --numerics fast", self.asked("compiled.jsonl")[0])
        sweep, table = (f"pipewright {command} {self.folder}/bundle/experiments/spectrain/vgg16.yaml" for command in ("sweep", "table"))
        self.assertTrue(self.asked("log.txt")[0].startswith(sweep))
        self.assertIn(f"--set dataset.root={self.folder.resolve()} ", self.asked("log.txt")[0])
        self.assertFalse(any(each.startswith(table) for each in self.asked("log.txt")))  # there is nothing to show
        self.assertEqual(said, (self.folder / "out/summary.txt").read_text())
        self.assertIn("out is not empty", self.check(code=2))

    def test_a_part_that_fails_fails_the_check_but_stops_nothing(self):
        said = self.check("gpu_tests) echo '[  FAILED  ] 2 tests, listed below:'; exit 1 ;;", "--parts", "tests memory", code=1)
        self.assertIn("tests.txt: run gpu_tests: failed with 1\n[  FAILED  ] 2 tests", said)
        self.assertRegex(said, r"memory.jsonl: run device_bench memory .*: \d+ s\nSome parts failed.")

    def test_a_part_that_is_killed_fails_the_check(self):
        said = self.check("gpu_tests) kill -9 $$ ;;", "--parts", "tests", code=1)
        self.assertIn("tests.txt: run gpu_tests: failed with 137", said)

    def test_a_part_whose_time_is_over_keeps_what_it_printed(self):
        said = self.check("*memory*) exec sleep 100 ;;", "--seconds", "6", "--parts", "memory codecs")
        self.assertRegex(said, r"memory.jsonl: run device_bench memory .*: cut after \d+ s")
        self.assertIn("All parts are fine.", said)
        self.assertEqual(3, len(self.asked("memory.jsonl")))
        self.assertEqual(1, len(self.asked("codecs.jsonl")))


if __name__ == "__main__":
    harness.main()
