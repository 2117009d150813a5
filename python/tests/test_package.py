# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: a wheel without code for one machine, typed, of the program's version."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest


def python(*arguments, **more):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def wheel(source, tmp_path):
    shutil.copytree(source / "python", tmp_path / "python", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    python("-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, tmp_path / "python")
    (built,) = tmp_path.glob("*.whl")
    return built


def test_the_wheel_works_elsewhere(source, wheel, tmp_path):
    version = re.search(r'define PIPEWRIGHT_VERSION "(.+)"', (source / "core/base/version.h").read_text())[1]
    in_python = version.replace("-rc.", "rc")
    assert wheel.name == f"pipewright-{in_python}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert "pipewright/py.typed" in names
    assert not [name for name in names if "test" in name]
    python("-m", "pip", "install", "--no-deps", "--no-index", "--target", tmp_path / "site", wheel)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = python(
        "-c",
        "import pipewright; print(pipewright.__file__); print(pipewright.version())",
        env=environment | {"PYTHONPATH": str(tmp_path / "site")},
    ).splitlines()
    assert said[0] == str(tmp_path / "site/pipewright/__init__.py")
    assert said[1].startswith(f"pipewright {version}, LibTorch ")


def mypy(source, file):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull]
    command += ["--config-file", source / "python/pyproject.toml", file]
    return subprocess.run(command, env=os.environ | {"MYPYPATH": str(source / "python")}, capture_output=True, text=True)


def test_its_types_are_complete(source):
    done = mypy(source, source / "python/pipewright")
    assert done.returncode == 0, done.stdout


def test_its_types_find_a_mistake(source, tmp_path):
    (tmp_path / "mine.py").write_text("import pipewright as pw\npw.run({}, resume='yes')\npw.load('runs').runs.shape\n")
    done = mypy(source, "mine.py")
    assert "mine.py:2: error" in done.stdout
    assert "Found 1 error" in done.stdout
