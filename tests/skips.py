# SPDX-License-Identifier: Apache-2.0
"""What a test cannot look at on this machine: printed, counted by ctest, and a failure where it should have been there.

A test that needs what a machine may lack names one of THINGS: with @needs on a test or a class, with lacks() inside a
test, or with left_out() where the rest of a test or of a script goes on without it. A module in which anything was
skipped exits with 77, which ctest counts as skipped, and prints a line for each:

    SKIPPED: Plot.test_curves_of_a_sweep: lacks gnuplot: there is no gnuplot (Debian: gnuplot-nox)

Where $PIPEWRIGHT_MAY_LACK is set, as in .ci/run, it lists what this machine may lack, words with blanks between them.
A skip for want of anything else is then a failure. `skips.h` and `skip` are the same for C++ and for shell scripts.
"""

import os
import re
import shutil
import sys
import unittest

# Every word that may stand in $PIPEWRIGHT_MAY_LACK, and how it is said that there is none.
THINGS = {
    "chromium": "there is no Chromium (Debian: chromium)",
    "clang-format": "there is no clang-format (Debian: clang-format)",
    "clang": "there is no clang++ (Debian: clang)",
    "clang-tidy": "there is no clang-tidy (Debian: clang-tidy)",
    "conformance": "there is no Python environment to compare with; tests/conformance/setup makes it (1.6 GB)",
    "fixed-addresses": "this machine does not let addresses be fixed (setarch -R), which ThreadSanitizer needs",
    "gnuplot": "there is no gnuplot (Debian: gnuplot-nox)",
    "gpu": "there is no CUDA device that LibTorch can use",
    "instruction-sets": "this processor has no instruction set but the one that every processor has",
    "mpirun": "there is no mpirun (Debian: openmpi-bin)",
    "network-namespaces": "network namespaces need root, a kernel that has them, and ip and tc (Debian: iproute2)",
    "other-users": "only root can become another user (setpriv, Debian: util-linux)",
    "overlays": "overlay mounts need root and a kernel that allows them in a namespace of its own",
    "other-users": "only root can become another user (setpriv, Debian: util-linux)",
    "overlays": "overlay mounts need root and a kernel that allows them in a namespace of its own",
    "pmix": "this Slurm has no PMIx",
    "python": "there is no environment for the Python package; python/tests/setup makes it (460 MB)",
    "real-data": "there are no real data in ../shared/data",
    "second-gpu": "there is only one CUDA device that LibTorch can use",
    "site": "there is no Python environment for tools/site; tools/site_pages/setup makes it (160 MB)",
    "slurm": "Slurm needs root, and its programs (Debian: slurm-wlm, munge)",
    "test-programs": "ctest names this program or library in a variable, if the build has it",
    "whole-memory": "this process may not use all memory of the machine",
    "zsh": "there is no zsh (Debian: zsh)",
}
SKIPPED = 77  # exit code that ctest counts as skipped

_noted = []  # (what was skipped, why)


def reason(thing, why=""):
    return f"lacks {thing}: {why or THINGS[thing]}"


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


def exit_code(failed):
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
    return SKIPPED if _noted else 0


def name_of(test):
    """Class.test, also of a subtest, a class or a module whose set-up was skipped."""
    return re.sub(r"\b__main__\.", "", test.id())


def main():
    """Runs the tests of the module that was started, as unittest.main() does, and exits with exit_code()."""
    result = unittest.main(verbosity=2, exit=False).result
    skipped = [(name_of(test), why) for test, why in result.skipped]
    _noted[:0] = skipped
    nothing = result.testsRun == 0 and not skipped
    if nothing:
        print("FAILED: no test ran", flush=True)
    sys.exit(exit_code(not result.wasSuccessful() or nothing))
