# SPDX-License-Identifier: Apache-2.0
"""What cannot be imported."""

import traceback
from pathlib import Path


class Refusal(Exception):
    """What cannot be imported, and why, in one line."""


def type_name(dtype):
    """torch.float32 as "float32"."""
    return str(dtype).removeprefix("torch.")


def in_a_line(error):
    """A type and the first line of what any exception says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:1]])


def line_of(error, without, within=""):
    """"net.py:12: " for the innermost line outside the folders `without` and inside the folder `within`, or ""."""
    frames = [each for each in traceback.extract_tb(error.__traceback__)
              if each.filename.startswith(within) and not each.filename.startswith(without)]
    frames = [each for each in frames if not each.filename.startswith("<")]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
