# SPDX-License-Identifier: Apache-2.0
"""The program in a folder that has a page's files."""

import os
import subprocess
from pathlib import Path

from study_pages.markers import Wrong


class Program:
    def __init__(self, root, folder):
        self.folder = Path(folder)
        self.binary = str(Path(os.environ.get("PIPEWRIGHT_BINARY", root / "build/pipewright")).resolve())
        (self.folder / "examples").symlink_to(Path(root).resolve() / "examples")

    def __call__(self, *arguments):
        """Returns what it prints."""
        try:
            done = subprocess.run([self.binary, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Wrong(f"{self.binary} cannot be started: {error.strerror}; build it with tools/setup --program, or name "
                        "another in PIPEWRIGHT_BINARY") from error
        if done.returncode:
            raise Wrong(f"pipewright {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout
