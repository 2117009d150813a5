# SPDX-License-Identifier: Apache-2.0
"""What cannot be imported."""


class Refusal(Exception):
    """What cannot be imported, and why, in one line."""


def type_name(dtype):
    """torch.float32 as "float32"."""
    return str(dtype).removeprefix("torch.")
