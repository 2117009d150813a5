# SPDX-License-Identifier: Apache-2.0
"""The package is typed, and of the program's version. tests/e2e/wheel_test.py installs it."""

import os
import re
import subprocess
import sys


def mypy(source, file):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull]
    command += ["--config-file", source / "pyproject.toml", file]
    return subprocess.run(command, env=os.environ | {"MYPYPATH": str(source / "python")}, capture_output=True, text=True)


def test_it_has_the_version_of_the_program(source):
    version = re.search(r'define PIPEWRIGHT_VERSION "(.+)"', (source / "core/base/version.h").read_text())[1]
    assert f'version = "{version.replace("-rc.", "rc")}"' in (source / "pyproject.toml").read_text()


def test_its_types_are_complete(source):
    done = mypy(source, source / "python/pipewright_lab")
    assert done.returncode == 0, done.stdout


def test_its_types_find_a_mistake(source, tmp_path):
    (tmp_path / "mine.py").write_text("import pipewright_lab as pw\npw.run({}, resume='yes')\npw.load('runs').runs.shape\n")
    done = mypy(source, "mine.py")
    assert "mine.py:2: error" in done.stdout
    assert "Found 1 error" in done.stdout
