# SPDX-License-Identifier: Apache-2.0
"""An installation serves every user of the machine: moved, read-only, and with nothing of the user who has made it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness
import other_user
import skips
from harness import DATA, MLP

BUILD = Path(os.environ["PIPEWRIGHT_BUILD_DIR"])


def setUpModule():
    if not other_user.possible():
        skips.lacks("other-users")
    if "PIPEWRIGHT_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        skips.lacks("test-programs")  # a build with sanitizers links one program
    global place, whole, plain
    place = Path(tempfile.mkdtemp(prefix="pipewright-e2e-install-"))
    unittest.addModuleCleanup(remove, place)
    place.chmod(0o755)
    install(place / "made", "--component", "libtorch", after=True)
    install(place / "plain")
    whole, plain = place / "moved" / "here", place / "plain"
    whole.parent.mkdir()
    (place / "made").rename(whole)
    for path in (whole, plain):
        subprocess.run(["chmod", "-R", "a-w", path], check=True)


def remove(folder):
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    shutil.rmtree(folder)


def install(prefix, *component, after=False):
    for more in ([], component) if after else ([],):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, *more], check=True, capture_output=True)


def run_path(program):
    """Where a program or library looks for libraries; none if it looks nowhere but where the system does."""
    said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return [folder for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", said) for folder in path.split(":")]


def binaries(folder):
    """The programs and shared libraries in a folder, without what the build keeps of its own."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or "CMakeFiles" in path.parts or not os.access(path, os.X_OK):
            continue
        with open(path, "rb") as file:
            if file.read(4) == b"\x7fELF":
                yield path


class ForEveryUser(harness.EndToEnd):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.home = other_user.folder_of_theirs(self.folder / "theirs")

    def theirs(self, commands, code=0):
        done = other_user.shell(commands, self.home)
        self.assertEqual(code, done.returncode, f"{commands}\n{done.stdout}{done.stderr}")
        return done

    def test_they_look_train_and_get_the_same_weights(self):
        self.write("theirs/x.yaml", MLP)
        program = whole / "bin/pipewright"
        self.assertIn("spectrain", self.theirs(f"{program} list schemes").stdout)
        self.assertIn("vertical_sync", self.theirs(f"{program} describe scheme pipedream").stdout)
        self.assertIn("dgx1-v100", self.theirs(f"{program} list hardware").stdout)
        self.assertIn("schedule    valid", self.theirs(f"{program} check x.yaml").stdout)
        self.theirs(f"{program} run x.yaml --out r --quiet")
        self.assert_same_weights(self.train(MLP, "here"), harness.Run(self.home / "r"))

    def test_they_compile_parts_of_their_own(self):
        for kind in ("scheme", "model"):
            said = self.theirs(f"{whole}/bin/pipewright new {kind} my_{kind}").stdout
            commands = re.findall(r"(?m)^  ((?:cmake|pipewright) .*)$", said)
            self.assertEqual(3, len(commands), said)
            self.assertIn(f"-DCMAKE_PREFIX_PATH={whole}", commands[0])
            self.theirs("\n".join(commands).replace("pipewright run", f"{whole}/bin/pipewright run --quiet --out {kind}"))
            self.assertEqual("done", harness.Run(self.home / kind).state())

    def test_it_looks_for_libraries_in_itself_alone(self):
        for program in ("bin/pipewright", "lib/pipewright/with_libtorch/pipewright"):
            for folder in run_path(whole / program):
                self.assertRegex(folder, r"^\$ORIGIN/", program)

    def test_nothing_that_is_built_looks_for_libraries_in_the_current_folder(self):
        """The loader takes an empty folder of a run path for the current one, where data of others may lie."""
        found = [*binaries(BUILD), *binaries(plain), *binaries(whole)]
        self.assertGreater(len(found), 8)
        for program in found:
            for folder in run_path(program):
                self.assertRegex(folder, r"^(/|\$ORIGIN(/|$))", program)

    def test_it_has_the_licence_of_what_it_carries(self):
        self.assertIn("PyTorch", (whole / "lib/pipewright/libtorch/LICENSE").read_text())

    def test_without_a_copy_of_libtorch_it_says_what_is_missing(self):
        self.write("theirs/x.yaml", MLP)
        program = plain / "bin/pipewright"
        self.assertIn("spectrain", self.theirs(f"{program} list schemes").stdout)
        libtorch = Path(run_path(program)[-1])
        self.assertTrue((libtorch / "libtorch_cpu.so").exists())
        reads = self.theirs(f"test -r {libtorch}/libtorch_cpu.so && echo yes || true").stdout
        if reads:
            self.theirs(f"{program} run x.yaml --out r --quiet")
            return
        refused = self.theirs(f"{program} run x.yaml --out r", code=DATA)
        self.assertEqual(1, len(refused.stderr.splitlines()), refused.stderr)
        self.assertRegex(
            refused.stderr, r"^LibTorch: /.*/libtorch_cpu\.so: cannot be read \(Permission denied\); `cmake .*--component libtorch`"
        )
        self.assertFalse((self.home / "r").exists())
        self.theirs(f"{program} new model mine")
        said = self.theirs(f"cmake -S mine -B mine/build -DCMAKE_PREFIX_PATH={plain}", code=1).stdout
        self.assertRegex(said, r"LibTorch's headers cannot be read in /.*--component libtorch")
        self.theirs(f"{program} new scheme half\ncmake -S half -B half/build -DCMAKE_PREFIX_PATH={plain}\ncmake --build half/build")
        self.assertIn("half", self.theirs(f"{program} list schemes --plugin half/build/half.so").stdout)


if __name__ == "__main__":
    harness.main()
