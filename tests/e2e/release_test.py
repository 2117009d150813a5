# SPDX-License-Identifier: Apache-2.0
"""One command makes all that a release has attached, with checksums and a list of what is inside."""

import json
import os
import re
import subprocess
import tarfile
import unittest
from pathlib import Path

import harness
from harness import SOURCE_DIR

BUILD = Path(os.environ["PIPEWRIGHT_BUILD_DIR"]).resolve()


def git(*words):
    return subprocess.run(["git", *words], cwd=SOURCE_DIR, check=True, capture_output=True).stdout


def release():
    torch = re.search(r"(?m)^Torch_DIR:PATH=(.+)$", (BUILD / "CMakeCache.txt").read_text())[1]
    return subprocess.run(
        [SOURCE_DIR / "tools/release"], env=os.environ | {"Torch_DIR": torch}, text=True, capture_output=True, stdin=subprocess.DEVNULL
    )


class Release(unittest.TestCase):
    def test_all_that_is_attached_is_there_whole_and_listed(self):
        if git("status", "--porcelain"):
            self.assertRegex(release().stderr, "^tools/release: there are changes that no commit has")
            return
        done = release()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        folder = SOURCE_DIR / "build/release"
        version = re.search(r'define PIPEWRIGHT_VERSION "(.+)"', (SOURCE_DIR / "core/base/version.h").read_text())[1]
        names = sorted(file.name for file in folder.iterdir())
        (wheel,), (package,) = ([name for name in names if name.endswith(end)] for end in (".whl", ".deb"))
        source, listed = f"pipewright-{version}.tar.gz", f"pipewright-{version}.cdx.json"
        self.assertEqual(names, sorted(["SHA256SUMS", wheel, package, source, listed]))
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
        with tarfile.open(folder / source) as archive:
            files = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
        self.assertEqual(sorted(files), sorted(git("ls-files").decode().splitlines()))
        contents = json.loads((folder / listed).read_text())
        named = " ".join(component["name"] for component in contents["components"])
        for part in ("pipewright_lab", "libyaml-cpp", "libarchive", "libsqlite3", "nlohmann-json3-dev", "libeigen3-dev", "torch"):
            self.assertIn(part, named)
        refs = [component["bom-ref"] for component in contents["components"]]
        self.assertEqual(len(refs), len(set(refs)))
        self.assertEqual(set(contents["dependencies"][0]["dependsOn"]), set(refs[1:]))


if __name__ == "__main__":
    harness.main()
