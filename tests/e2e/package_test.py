# SPDX-License-Identifier: Apache-2.0
"""The Debian package: dpkg installs it, every user trains with it, and dpkg removes it without a trace.

This happens in an overlay over this machine's files, in a namespace of its own, where root's cache and the build folder
are hidden: what is installed cannot need them, and nothing here changes.
"""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
import other_user
import skips

BUILD = Path(os.environ["PIPEWRIGHT_BUILD_DIR"]).resolve()
EXPERIMENT = "/usr/share/pipewright/experiments/quickstart.yaml"
POINT = "spectrain v1 stages 4 seed 1"

# Arguments: a folder for the overlay, the folder with the package and the script, folders to hide.
IN_AN_OVERLAY = r"""
set -eu
layers=$1 work=$2
shift 2
mount -t tmpfs none "$layers"  # an overlay's layers must not lie in each other
mkdir "$layers/upper" "$layers/work" "$layers/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/upper,workdir=$layers/work" "$layers/root"
for folder in "$@"; do mount -t tmpfs none "$layers/root$folder"; done
mkdir "$layers/root/given"
mount --bind "$work" "$layers/root/given"
for folder in /proc /dev; do mount --rbind "$folder" "$layers/root$folder"; done
exec chroot "$layers/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  bash -eux /given/script
"""
AS_ROOT = r"""
dpkg -i /given/*.deb
dpkg -L pipewright >/given/files
cd /given/theirs
{as_nobody} env HOME=/given/theirs bash -eux /given/their-script
dpkg -r pipewright
while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || echo "$file"; done </given/files >/given/left
find /usr -ipath '*pipewright*' >>/given/left
"""
THEIRS = r"""
command -v pipewright
pipewright --version
pipewright list >list
pipewright check {experiment} --point '{point}' >check
pipewright run {experiment} --point '{point}' --out run --quiet
pipewright new scheme mine
cmake -S mine -B mine/build
cmake --build mine/build
pipewright run mine/experiment.yaml --plugin mine/build/mine.so --out mine-run --quiet
man pipewright >page 2>&1
LC_ALL=C.UTF-8 man --warnings -l /usr/share/man/man1/pipewright.1* 2>warnings >/dev/null
"""


def overlays():
    if not other_user.possible():
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = (
            'mount -t tmpfs none "$0"; mkdir "$0/u" "$0/w" "$0/m";'
            'mount -t overlay overlay -o "lowerdir=/,upperdir=$0/u,workdir=$0/w" "$0/m"'
        )
        return subprocess.run(["unshare", "--mount", "sh", "-ec", command, folder], capture_output=True).returncode == 0


class Package(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        if not (BUILD / "CPackConfig.cmake").exists():
            skips.lacks("test-programs")  # builds with CUDA or sanitizers make no package
        self.folder.chmod(0o755)
        self.packed = self.folder / "given"
        self.packed.mkdir()
        done = subprocess.run(
            ["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder / "packing"], capture_output=True, text=True
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        (self.package,) = (self.folder / "packing").glob("*.deb")

    def field(self, name):
        return subprocess.run(["dpkg-deb", "-f", self.package, name], capture_output=True, text=True).stdout.strip()

    def test_it_is_installed_used_by_another_user_and_removed(self):
        self.assertRegex(self.package.name, r"^pipewright_[\d.]+(~rc\.\d+)?_\w+\.deb$")
        for library in ("libyaml-cpp", "libsqlite3-0", "libgomp1|libc6"):
            self.assertRegex(self.field("Depends"), library)
        self.assertNotIn("torch", self.field("Depends"))
        if not overlays():
            skips.lacks("overlays")
        self.package.rename(self.packed / self.package.name)
        theirs = other_user.folder_of_theirs(self.packed / "theirs")
        words = {"experiment": EXPERIMENT, "point": POINT}
        (self.packed / "their-script").write_text(THEIRS.format(**words))
        (self.packed / "script").write_text(AS_ROOT.replace("{as_nobody}", " ".join(other_user.WORDS)))
        layers = self.folder / "layers"
        layers.mkdir()
        hidden = [folder for folder in (Path.home() / ".cache", BUILD) if folder.exists()]
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", IN_AN_OVERLAY, "bash", layers, self.packed, *hidden],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
        )  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout[-4000:] + done.stderr[-4000:])

        files = (self.packed / "files").read_text().split()
        for file in ("bin/pipewright", "lib/pipewright/libtorch/lib/libtorch_cpu.so", "share/doc/pipewright/LICENSE",
                     "share/bash-completion/completions/pipewright", "share/zsh/vendor-completions/_pipewright"):  # fmt: skip
            self.assertIn(f"/usr/{file}", files)
        self.assertEqual("", (self.packed / "left").read_text(), "left after dpkg -r")
        self.assertIn("spectrain", (theirs / "list").read_text())
        self.assertEqual("", (theirs / "warnings").read_text())
        page = re.sub(r"\s+", " ", (theirs / "page").read_text())
        self.assertIn("go on at the last checkpoint of the folder", page)
        self.assertEqual("done", harness.Run(theirs / "mine-run").state())
        experiment = harness.SOURCE_DIR / "experiments/quickstart.yaml"
        self.pipewright("run", experiment, "--point", POINT, "--out", "here", "--quiet")
        self.assert_same_weights(harness.Run(self.folder / "here"), harness.Run(theirs / "run"))


class Image(unittest.TestCase):
    def test_commands_mount_the_folder_in_which_the_program_works(self):
        image = (harness.SOURCE_DIR / "Containerfile").read_text()
        works_in = re.search(r"^WORKDIR (\S+)$", image, re.MULTILINE)[1]
        for text in (image, (harness.SOURCE_DIR / "docs/manual/reference/install.md").read_text()):
            mounted = re.findall(r'podman run .*--volume "\$PWD:(\S+)"', text)
            self.assertEqual([works_in], mounted)


if __name__ == "__main__":
    harness.main()
