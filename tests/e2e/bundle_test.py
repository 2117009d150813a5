# SPDX-License-Identifier: Apache-2.0
"""tools/bundle, its launcher and tools/gpu-check, with stand-ins for torch, the programs and a GPU.

tests/bundle runs a real bundle by hand.
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile

import harness

TOOLS = harness.SOURCE_DIR.resolve() / "tools"
STEP = {"kind": "step", "static": True, "batch": 1, "steps": 1, "model": "m", "precision": "p", "scheme": "s"}
PASSED, FAILED = "[       OK ] A.B (1 ms)\n", "[  FAILED  ] A.B, where GetParam() = 3 (1 ms)\n"

# What the stand-in for all programs of a bundle does: it plays a fault that a test asks for, or prints what is in
# answers/<program>, or answers/<program>-<first argument>.
PROGRAM = r"""#!/bin/sh
here=$(dirname "$0")
echo "$@" >>"$here/asked"
name=$1; part=${2:-}
case "$name" in device_bench) name=$name-$part ;; esac
[ ! -e "$here/answers/$name.sh" ] || . "$here/answers/$name.sh"
cat "$here/answers/$name" 2>/dev/null
exit 0
"""

# The program's part in the recipe: two epochs, and then whatever it is told.
TRAINS = r"""
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
{
  echo epoch,train_loss,test_accuracy,seconds,samples_per_second
  echo 0,2.0,0.25,9.0,10
  echo 1,1.0,0.5,2.0,100
} >"$2/epochs.csv"
"""


def times(plain, ours):
    return {"plain_ms": plain, "serial_ms": ours, "one_stream_ms": ours, "own_streams_ms": ours}


class Bundle(harness.EndToEnd):
    def fake_bundle(self, **answers):
        """A bundle whose programs print the given answers; a name that ends in _sh has shell commands instead."""
        bundle = self.folder / "pipewright-bundle"
        (bundle / "answers").mkdir(parents=True)
        defaults = {
            "pipewright": "pipewright ok      1.2.3\n",
            "pipewright_sh": f'[ "$2" != run ] || {{ {TRAINS} }}',
            "gpu_tests": f"[ RUN      ] A.B\n{PASSED}",
            "device_bench_steps": json.dumps(STEP | times([2, 4, 3], [2, 2, 3])),
            "device_bench_codecs": json.dumps(
                {"kind": "codec", "options": "{}", "values": 8,
                 "copy_ms": [1, 2], "encode_ms": [4, 6], "decode_ms": [1, 1]}
            ),
            "device_bench_memory": json.dumps(
                {"kind": "memory", "model": "m", "precision": "p", "scheme": "s",
                 "predicted_bytes": [110, 90], "measured_bytes": [100, 100]}
            ),
        }  # fmt: skip
        for name, content in (defaults | answers).items():
            file = name.replace("device_bench_", "device_bench-")
            file = file.removesuffix("_sh") + ".sh" if file.endswith("_sh") else file
            (bundle / "answers" / file).write_text(content + "\n")
        (bundle / "run").write_text(PROGRAM)
        (bundle / "run").chmod(0o755)
        self.write_manifest(bundle)
        return bundle

    def write_manifest(self, bundle, **changes):
        files = [file for file in bundle.rglob("*") if file.is_file() and file.name != "manifest.json"]
        sums = {str(file.relative_to(bundle)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        manifest = {"version": "1.2.3", "commit": "c0ffee", "changed": False, "torch": "2.0", "c_library": "2.36",
                    "sha256": sums}  # fmt: skip
        (bundle / "manifest.json").write_text(json.dumps(manifest | changes, indent=1))

    def packed(self, bundle):
        archive = self.folder / "bundle.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            file.add(bundle, "pipewright-bundle")
        return archive

    def check(self, bundle, *arguments, code=0):
        command = [sys.executable, TOOLS / "gpu-check", bundle, "--out", self.folder / "out", "--device", "cpu",
                   "--small", "--minutes", "2", *arguments]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT)
        self.said = done.stdout + done.stderr
        self.assertEqual(code or 0, done.returncode, self.said)
        self.assertNotIn("Traceback", self.said)
        return json.loads((self.folder / "out/gpu-check.json").read_text())["parts"] if code in (0, 1) else None

    def markdown(self):
        return (self.folder / "out/gpu-check.md").read_text()

    def test_all_parts_run_in_order_of_importance(self):
        bundle = self.fake_bundle()
        parts = self.check(bundle)
        self.assertEqual(["tests", "steps", "codecs", "memory", "recipe"], list(parts))
        self.assertEqual({"done"}, {part["status"] for part in parts.values()})
        asked = [line.split()[:2] for line in (bundle / "asked").read_text().splitlines()]
        self.assertEqual(["pipewright", "doctor"], asked[0])
        self.assertEqual(["gpu_tests"], asked[1])
        self.assertEqual([["device_bench", "steps"]] * 6, asked[2:8], "three models in two precisions")
        self.assertEqual(["device_bench", "codecs"], asked[8])
        self.assertEqual(["device_bench", "memory"], asked[9])
        self.assertEqual(["pipewright", "run"], asked[10])
        self.assertLessEqual(len(list((self.folder / "out").iterdir())), 8, "what comes back from some machines")

    def test_figures_are_medians_with_their_spread(self):
        parts = self.check(self.fake_bundle())
        case = parts["steps"]["cases"][0]
        self.assertEqual({"median": 3, "low": 2, "high": 4, "rounds": 3}, case["plain"])
        self.assertEqual({"median": 1, "low": 0.5, "high": 1, "rounds": 3}, case["serial"], "ratios of the same rounds")
        self.assertEqual(3.5, parts["codecs"]["cases"][0]["encode"]["median"])
        low, high = parts["memory"]["cases"][0]["error_percent"]
        self.assertAlmostEqual(10, low)
        self.assertAlmostEqual(-10, high)
        self.assertEqual([0.25, 0.5], [epoch["test_accuracy"] for epoch in parts["recipe"]["epochs"]])
        self.assertEqual(2, parts["recipe"]["seconds_per_epoch"]["median"], "the first epoch warms up")
        for words in ("3.00 (2.00 – 4.00)", "3.50 (3.00 – 4.00)", "+10.0, -10.0", "| 2 | 1.0000 | 50.00 |"):
            self.assertIn(words, self.markdown())

    def test_epochs_of_a_recipe_that_is_cut_are_those_it_has_printed(self):
        line = "epoch {}/9  loss {}  test loss 2.1000  test accuracy {} %  {} s (10 samples/s)"
        prints = "".join(f"echo '{line.format(*epoch)}';" for epoch in ((1, 2.5, "25.00", 9.0), (2, 1.5, "50.00", 4.0)))
        bundle = self.fake_bundle(pipewright_sh=f'[ "$2" != run ] || {{ {prints} }}')
        recipe = self.check(bundle, "--parts", "recipe")["recipe"]
        self.assertEqual([(0, 2.5, 0.25), (1, 1.5, 0.5)],
                         [(each["epoch"], each["train_loss"], each["test_accuracy"]) for each in recipe["epochs"]])  # fmt: skip
        self.assertEqual(4, recipe["seconds_per_epoch"]["median"])

    def test_cuda_graphs_are_due_where_a_static_schedule_is_slower_than_a_plain_step(self):
        for ours, due in ((2.0, False), (2.2, True)):
            with self.subTest(ours=ours):
                answer = json.dumps(STEP | times([2, 2], [ours, ours]))
                harness.shutil.rmtree(self.folder / "pipewright-bundle", ignore_errors=True)
                parts = self.check(self.fake_bundle(device_bench_steps=answer), "--parts", "steps")
                self.assertEqual(due, parts["steps"]["cuda_graphs"]["due"])
                self.assertEqual(due, "CUDA graphs are due" in self.markdown())

    def test_a_failed_test_fails_the_check_but_stops_nothing(self):
        broken = f"[ RUN      ] A.B\n{FAILED}[  FAILED  ] A.B, where GetParam() = 3\n"
        parts = self.check(self.fake_bundle(gpu_tests=broken, gpu_tests_sh="trap 'exit 1' EXIT"), code=1)
        self.assertEqual("failed", parts["tests"]["status"])
        self.assertEqual(["A.B"], parts["tests"]["failed"])
        self.assertEqual("done", parts["recipe"]["status"])

    def test_a_program_that_dies_in_a_test_is_said(self):
        broken = f"[ RUN      ] A.B\n{PASSED}[ RUN      ] A.C\n"
        bundle = self.fake_bundle(gpu_tests=broken, gpu_tests_sh="trap 'kill -SEGV $$' EXIT")
        parts = self.check(bundle, "--parts", "tests", code=1)
        self.assertEqual(["A.C"], parts["tests"]["unfinished"])

    def test_where_every_test_skips_the_part_is_skipped_not_passed(self):
        parts = self.check(self.fake_bundle(gpu_tests="[ RUN      ] A.B\n[  SKIPPED ] A.B (0 ms)"), "--parts", "tests")
        self.assertEqual("skipped", parts["tests"]["status"])
        self.assertEqual(0, parts["tests"]["passed"])

    def test_a_case_that_could_not_be_measured_is_said(self):
        answer = json.dumps(STEP | {"error": "out of memory"})
        parts = self.check(self.fake_bundle(device_bench_steps=answer), "--parts", "steps,codecs", code=1)
        self.assertIn("m, p, s: out of memory", parts["steps"]["notes"])
        self.assertEqual("done", parts["codecs"]["status"])
        self.assertIn("nothing is known of CUDA graphs", self.markdown())

    def test_a_part_that_takes_too_long_is_cut_and_keeps_what_it_printed(self):
        whole = json.dumps(STEP | times([2, 2], [2, 2]))
        slow = self.fake_bundle(device_bench_steps_sh=f"echo '{whole}'; printf '%s' '{{\"kind\": \"st'; exec sleep 100")
        parts = self.check(slow, "--parts", "steps,codecs", "--minutes", "0.1")
        self.assertEqual("cut", parts["steps"]["status"])
        self.assertTrue(parts["steps"]["cases"])

    def refused(self, bundle, words):
        """One line says why, nothing of the bundle has run, and no result was touched."""
        self.check(bundle, code=2)
        lines = self.said.splitlines()
        self.assertEqual(1, len(lines), self.said)
        self.assertRegex(lines[0], f"^gpu-check: .*{words}")
        self.assertFalse((self.folder / "out").exists())
        self.assertEqual([], [*self.folder.rglob("asked")])

    def test_an_archive_is_unpacked(self):
        archive = self.packed(self.fake_bundle())
        self.assertEqual("done", self.check(archive, "--parts", "codecs")["codecs"]["status"])

    def test_a_folder_that_does_not_hold_its_manifests_files_is_refused(self):
        cases = (
            ("run is damaged", lambda bundle: (bundle / "run").write_text(PROGRAM + "#")),
            ("run is missing", lambda bundle: (bundle / "run").unlink()),
            ("more is not named in manifest.json", lambda bundle: (bundle / "more").touch()),
            ("lib/more.so is not named", lambda bundle: harness.EndToEnd.write(self, bundle / "lib/more.so", "")),
            ("more is neither file nor folder", lambda bundle: (bundle / "more").symlink_to("run")),
            ("more is neither file nor folder", lambda bundle: os.mkfifo(bundle / "more")),
            ("manifest.json names /etc/passwd", lambda bundle: self.name_also(bundle, "/etc/passwd")),
            (r"manifest.json names \.\./x", lambda bundle: self.name_also(bundle, "../x")),
            ("answers is missing, or is no file", lambda bundle: self.name_also(bundle, "answers")),
            (r"a\?b is missing, or is no file", lambda bundle: self.name_also(bundle, "a\0b")),
            (r"a\?b is missing, or is no file", lambda bundle: self.name_also(bundle, "a\nb")),
            ("it has no sha256", lambda bundle: self.write_manifest(bundle, sha256=["run"])),
            ("it has no torch", lambda bundle: self.write_manifest(bundle, torch=2)),
            ("it has no version", lambda bundle: (bundle / "manifest.json").write_text("[]")),
            ("manifest.json is damaged", lambda bundle: (bundle / "manifest.json").write_text("{")),
            ("manifest.json is damaged", lambda bundle: (bundle / "manifest.json").write_text("[" * 100000)),
            ("manifest.json is damaged", lambda bundle: (bundle / "manifest.json").write_bytes(b"\xff")),
            ("is no bundle", lambda bundle: (bundle / "manifest.json").unlink()),
        )
        for words, damage in cases:
            for packed in (False, True):
                with self.subTest(words, packed=packed):
                    harness.shutil.rmtree(self.folder / "pipewright-bundle", ignore_errors=True)
                    bundle = self.fake_bundle()
                    damage(bundle)
                    self.refused(self.packed(bundle) if packed else bundle, words)

    def name_also(self, bundle, name):
        sums = json.loads((bundle / "manifest.json").read_text())["sha256"]
        self.write_manifest(bundle, sha256=sums | {name: "0"})

    def test_a_damaged_archive_is_refused(self):
        whole = self.packed(self.fake_bundle()).read_bytes()
        archive = self.folder / "damaged.tar.gz"
        for cut in (0, 1, 10, 100, len(whole) // 2, len(whole) - 20):
            with self.subTest(cut=cut):
                archive.write_bytes(whole[:cut])
                self.refused(archive, "damaged.tar.gz is no archive of tools/bundle, or damaged")
        for at in range(40, len(whole), len(whole) // 20):  # before it are names and times, which nobody reads
            with self.subTest(at=at):
                archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
                self.refused(archive, "")
        archive.write_text("no archive")
        self.refused(archive, "is no archive")

    def test_an_archive_that_leads_out_or_holds_no_files_is_refused(self):
        for kind, name, link in (
            (tarfile.REGTYPE, "../out/tests.log", ""),
            (tarfile.REGTYPE, f"{self.folder}/stolen", ""),
            (tarfile.SYMTYPE, "pipewright-bundle/a", "/etc"),
            (tarfile.LNKTYPE, "pipewright-bundle/a", "/etc/passwd"),
            (tarfile.FIFOTYPE, "pipewright-bundle/manifest.json", ""),
            (tarfile.CHRTYPE, "pipewright-bundle/run", ""),
        ):
            with self.subTest(name, kind=kind):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, link
                archive = self.folder / "hostile.tar.gz"
                with tarfile.open(archive, "w:gz") as file:
                    file.addfile(info)
                self.refused(archive, "")
        self.assertFalse((self.folder / "stolen").exists())
        info = tarfile.TarInfo("pipewright-bundle/large")
        info.size = 1 << 40
        archive.write_bytes(gzip.compress(info.tobuf()))
        self.refused(archive, "holds more than")

    def test_what_is_no_bundle_is_refused(self):
        self.refused(self.folder / "nowhere.tar.gz", "is neither an archive nor a folder")
        os.mkfifo(self.folder / "fifo.tar.gz")
        self.refused(self.folder / "fifo.tar.gz", "is neither an archive nor a folder")
        self.refused(self.folder, "is no bundle of tools/bundle")

    def test_only_the_results_of_an_earlier_check_are_replaced(self):
        bundle = self.fake_bundle()
        notes = [self.write(name, "mine") for name in ("out/mine.log", "out/notes.txt")]
        self.check(self.folder / "nowhere.tar.gz", code=2)
        self.check(bundle, "--parts", "codecs")
        (bundle / "asked").unlink()
        self.check(bundle, "--parts", "codecs")
        self.assertEqual(1, (self.folder / "out/codecs.log").read_text().count("$ run"), "of the last check only")
        self.assertEqual(["mine", "mine"], [file.read_text() for file in notes])

    def test_files_with_the_names_of_results_are_kept(self):
        bundle = self.fake_bundle()
        for name in ("tests.log", "gpu-check.json", "gpu-check.md"):
            with self.subTest(name):
                harness.shutil.rmtree(self.folder / "out", ignore_errors=True)
                mine = self.write(f"out/{name}", "{}")
                self.check(bundle, code=2)
                self.assertIn(f"{name} is not of an earlier check; give another --out", self.said)
                self.assertEqual("{}", mine.read_text())

    def test_results_may_lie_in_the_bundle(self):
        bundle = self.fake_bundle()
        for _ in range(2):
            self.check(bundle, "--parts", "codecs", "--out", bundle / "checked", code=None)
            (bundle / "asked").unlink()
        (bundle / "checked/more.so").touch()
        self.check(bundle, "--parts", "codecs", "--out", bundle / "checked", code=2)
        self.assertIn("checked/more.so is not named", self.said)

    def test_output_that_cannot_be_read_fails_its_part_only(self):
        for answer in ('{"kind": "codec"}', '{"kind": "codec", "copy_ms": [1], "encode_ms": "x", "decode_ms": 3}'):
            with self.subTest(answer):
                harness.shutil.rmtree(self.folder / "pipewright-bundle", ignore_errors=True)
                parts = self.check(self.fake_bundle(device_bench_codecs=answer), "--parts", "codecs,memory", code=1)
                self.assertEqual("failed", parts["codecs"]["status"])
                self.assertIn("its output cannot be read", parts["codecs"]["notes"][0])
                self.assertEqual("done", parts["memory"]["status"])

    def test_unknown_parts_are_refused(self):
        self.check(self.fake_bundle(), "--parts", "steps,speed", code=2)
        self.assertIn("--parts: speed; expected some of tests, steps, codecs, memory, recipe", self.said)


class Launcher(harness.EndToEnd):
    """tools/run-bundle with a torch that has nothing but its name."""

    def setUp(self):
        super().setUp()
        self.bundle, self.torch = self.folder / "bundle", self.folder / "site/torch"
        (self.bundle / "bin").mkdir(parents=True)
        (self.torch / "lib").mkdir(parents=True)
        (self.folder / "site/nvidia/cu13/lib").mkdir(parents=True)
        (self.torch / "lib/libtorch_cpu.so").touch()
        (self.torch / "__init__.py").write_text("raise SystemExit('torch must not be imported')")
        (self.torch / "version.py").write_text("__version__ = '2.0+cu0'\n")
        manifest = {"version": "1", "torch": "2.0+cu0", "sha256": {}}
        (self.bundle / "manifest.json").write_text(json.dumps(manifest, indent=1))
        (self.bundle / "run").write_bytes((TOOLS / "run-bundle").read_bytes())
        program = self.bundle / "bin/says"
        program.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH $*"\n')
        program.chmod(0o755)

    def launched(self, *arguments, code=0, **environment):
        cleared = ("Torch_DIR", "PIPEWRIGHT_PYTHON", "LD_LIBRARY_PATH")
        kept = {name: value for name, value in os.environ.items() if name not in cleared}
        command = ["sh", self.bundle / "run", *arguments]
        done = subprocess.run(command, env=kept | environment, capture_output=True, text=True)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def test_a_program_gets_the_bundles_libraries_and_then_the_wheels(self):
        said = self.launched("says", "a", "b c", Torch_DIR=str(self.torch))
        folders, *arguments = said.split()
        self.assertEqual(["a", "b", "c"], arguments)
        self.assertEqual([self.bundle / "lib", self.torch / "lib", self.torch / "../nvidia/cu13/lib"],
                         [harness.Path(folder) for folder in folders.split(":")])  # fmt: skip

    def test_torch_is_found_in_a_python_without_importing_it(self):
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={self.folder}/site exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.assertIn(str(self.torch / "lib"), self.launched("says", PIPEWRIGHT_PYTHON=str(python)))

    def test_another_torch_is_refused(self):
        (self.torch / "version.py").write_text("__version__ = '2.1'\n")
        said = self.launched("says", Torch_DIR=str(self.torch), code=1)
        self.assertIn("is torch '2.1', but the bundle was built with '2.0+cu0'", said)

    def test_what_is_absent_is_said(self):
        self.assertIn("there is no program 'dances'; expected one of: says", self.launched("dances", code=1))
        self.assertIn("has no torch", self.launched("says", PIPEWRIGHT_PYTHON="/nowhere/python", code=1))
        self.assertIn("has no lib/libtorch_cpu.so", self.launched("says", Torch_DIR="/nowhere", code=1))


class Maker(harness.EndToEnd):
    def bundle(self, *arguments, code=0):
        command = [sys.executable, TOOLS / "bundle", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def test_it_explains_itself(self):
        self.assertIn("--from", self.bundle("--help"))

    def test_what_cannot_be_bundled_is_refused(self):
        self.assertIn("expected a name that ends in .tar.gz", self.bundle("bundle.zip", code=1))
        self.assertIn("is no build folder", self.bundle("--from", ".", "bundle.tar.gz", code=1))
        (self.folder / "CMakeCache.txt").touch()
        self.assertIn("has no with_libtorch/pipewright", self.bundle("--from", ".", "bundle.tar.gz", code=1))
        self.assertFalse((self.folder / "bundle.tar.gz").exists())

    def test_scripts_are_shell(self):
        for script in (TOOLS / "run-bundle", *(harness.SOURCE_DIR / "tests/bundle").glob("*.sh")):
            subprocess.run(["bash", "-n", script], check=True)


if __name__ == "__main__":
    harness.main()
