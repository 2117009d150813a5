# SPDX-License-Identifier: Apache-2.0
"""Does what a page of the manual says where that needs torch: writes its files and runs its blocks "sh torch"."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["PIPEWRIGHT_SOURCE_DIR"])


class TorchPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pipewright-page-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "pipewright").symlink_to(os.environ["PIPEWRIGHT_BINARY"])
        (self.folder / "tools").symlink_to(SOURCE / "tools")
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "$@"\n')
        (self.folder / "bin" / "python3").chmod(0o755)

    def perform(self, command):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def do(self, name):
        """Returns what each command of the page has printed; files are there from the beginning."""
        page = (SOURCE / "docs/manual/howto" / name).read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w+)(?: \w+)?\n(.*?)^```$", page, re.M | re.S)
        for language, text in blocks:
            if language != "sh":
                (self.folder / re.match(r"# (\S+)\n", text)[1]).write_text(text, encoding="utf-8")
        return [self.perform(command) for language, text in blocks if language == "sh" for command in text.splitlines()]
