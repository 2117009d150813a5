# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the main README, for the tests that do what it says."""

import re

import harness

TEXT = (harness.SOURCE_DIR / "README.md").read_text(encoding="utf-8")
PLUGIN = "A scheme outside this repository"  # the section that plugin_test.py is about


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)[0]


def blocks(language, within=None, without=None):
    """Of one section, or of all but one."""
    text = section(within) if within else TEXT
    text = text.replace(section(without), "") if without else text
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
