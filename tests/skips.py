# SPDX-License-Identifier: Apache-2.0
"""What a test cannot look at on this machine: printed, and a failure where it should have been there.

A test that needs what a machine may lack names one of THINGS: with @needs on a test or a class, with lacks() inside a
test, or with left_out() where the rest of a test or of a script goes on without it. For each it prints a line, which
entry.py collects for the end of tools/test:

    SKIPPED: Plot.test_curves_of_a_sweep: lacks gnuplot: there is no gnuplot

A module of which nothing ran exits with 77, which ctest counts as skipped. One of which anything ran has passed or failed.

Where $PIPEWRIGHT_MAY_LACK is set, as in .ci/run, it lists what this machine may lack, words with blanks between them.
A skip for want of anything else is then a failure. `skips.h` and `skip` are the same for C++ and for shell scripts.
"""

import os
import re
import shutil
import sys
import unittest

# Every word that may stand in $PIPEWRIGHT_MAY_LACK, how it is said that there is none, and what provides it.
THINGS = {
    "chromium": ("there is no Chromium", "tests/setup --all"),
    "clang-format": ("there is no clang-format", "tests/setup"),
    "clang": ("there is no clang++", "tests/setup --all"),
    "clang-tidy": ("there is no clang-tidy", "tests/setup --all"),
    "conformance": ("there is no Python environment to compare with", "tests/conformance/setup"),
    "fixed-addresses": (
        "this machine does not let addresses be fixed (setarch -R), which ThreadSanitizer needs",
        "a container with --security-opt seccomp=unconfined, or none",
    ),
    "gnuplot": ("there is no gnuplot", "tools/setup"),
    "gpu": ("there is no CUDA device that LibTorch can use", "an NVIDIA GPU, and a LibTorch with CUDA in Torch_DIR"),
    "hosts": ("hosts on one machine need root, a kernel with namespaces, ip, tc and sshd", "sudo tests/setup, and root"),
    "instruction-sets": ("this processor has no instruction set but the one that every processor has", "a processor with AVX2"),
    "mpirun": ("there is no mpirun", "tools/setup"),
    "netem": ("this kernel has no queue that delays packets (CONFIG_NET_SCH_NETEM)", "a kernel that has it"),
    "network-namespaces": ("network namespaces need root, a kernel that has them, and ip and tc", "sudo tests/setup, and root"),
    "other-kernels": ("LibTorch takes another instruction set here, and rounds differently", "a processor that has it, and no more"),
    "other-users": ("only root can become another user", "root"),
    "overlays": ("overlay mounts need root and a kernel that allows them in a namespace of its own", "root"),
    "pmix": ("this Slurm has no PMIx", "a Slurm with PMIx"),
    "python": ("there is no environment for the Python package", "python/tests/setup"),
    "real-data": ("there are no real data in ../shared/data", "the files of `build/pipewright fetch NAME`, laid there"),
    "second-gpu": ("there is only one CUDA device that LibTorch can use", "a second NVIDIA GPU"),
    "site": ("there is no Python environment for tools/site", "tools/site_pages/setup"),
    "slurm": ("Slurm needs root, and its programs", "sudo tests/setup --all, and root"),
    "test-programs": ("ctest names this program or library in a variable, if the build has it", "tools/test"),
    "whole-memory": ("this process may not use all memory of the machine", "a machine or container without a limit"),
    "zsh": ("there is no zsh", "tests/setup"),
}
SKIPPED = 77  # exit code that ctest counts as skipped

_noted = []  # (what was skipped, why)


def reason(thing, why=""):
    return f"lacks {thing}: {why or THINGS[thing][0]}"


def read(line):
    """(what was skipped, or "" where a script is all of it; why; what provides what is lacking) of a printed line."""
    what, lacks, why = re.fullmatch(r"SKIPPED: (?:(?!lacks )(.*?): )?(?:lacks ([a-z-]+): )?(.*)", line.strip()).groups()
    return what or "", why, THINGS[lacks][1] if lacks in THINGS else ""


def has(program):
    return shutil.which(program) is not None


def needs(thing, there=None, why=""):
    """Skips a test or a class unless the thing is there; a thing that is a program is looked for."""
    return unittest.skipUnless(has(thing) if there is None else there, reason(thing, why))


def lacks(thing, why=""):
    """Skips the test that calls it, or all tests of the class or module whose set-up does."""
    raise unittest.SkipTest(reason(thing, why))


def left_out(what, thing, why=""):
    """Notes that a part of a test or script was left out, once for each part."""
    if (what, reason(thing, why)) not in _noted:
        _noted.append((what, reason(thing, why)))


def with_mpi(executions, what):
    """The executions, and mpi where there is an mpirun."""
    if has("mpirun"):
        return [*executions, "mpi"]
    left_out(f"{what} in mpi", "mpirun")
    return list(executions)


def may_be_lacking(why, environment=os.environ):
    """Whether a machine may skip for this reason."""
    allowed = environment.get("PIPEWRIGHT_MAY_LACK")
    lacking = re.match(r"lacks ([a-z-]+): ", why)
    return allowed is None or (lacking is not None and lacking[1] in allowed.split())


def exit_code(failed, ran=True):
    """Of a script that has done its work: prints what was skipped, and what of it must not be."""
    sys.stdout.flush()
    for what, why in _noted:
        print(f"SKIPPED: {what}: {why}", flush=True)
    forbidden = [what for what, why in _noted if not may_be_lacking(why)]
    if forbidden:
        allowed = os.environ["PIPEWRIGHT_MAY_LACK"]
        print(f"FAILED: {len(forbidden)} skipped, though PIPEWRIGHT_MAY_LACK is '{allowed}'", flush=True)
    if failed or forbidden:
        return 1
    return 0 if ran else SKIPPED


def name_of(test):
    """Class.test, also of a subtest, a class or a module whose set-up was skipped."""
    return re.sub(r"\b__main__\.", "", test.id())


class Result(unittest.TextTestResult):
    """Counts the tests, and subtests, that ran to their end."""

    ran = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.ran += 1

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.ran += 1


def main():
    """Runs the tests of the module that was started, as unittest.main() does, and exits with exit_code()."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(testRunner=runner, exit=False).result
    skipped = [(name_of(test), why) for test, why in result.skipped]
    _noted[:0] = skipped
    nothing = result.testsRun == 0 and not skipped
    if nothing:
        print("FAILED: no test ran", flush=True)
    sys.exit(exit_code(not result.wasSuccessful() or nothing, result.ran > 0))
