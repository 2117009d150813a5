# SPDX-License-Identifier: Apache-2.0
"""Commands of somebody who is not root and owns nothing but a folder: what every user of the machine can do."""

import os
import subprocess

import skips

NOBODY = 65534
WORDS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]


def possible():
    return os.geteuid() == 0 and skips.has("setpriv")


def folder_of_theirs(path):
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    return path


def environment(home):
    """Nothing in it is of the user who runs the tests."""
    return {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def shell(commands, home):
    return subprocess.run(
        [*WORDS, "sh", "-e", "-c", commands], cwd=home, env=environment(home), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
