# SPDX-License-Identifier: Apache-2.0
"""Markdown as GitHub reads it, rewritten for Python-Markdown; and the names that GitHub gives to headings."""

import re

FENCE = re.compile(r"^ *```")
ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
ROW = re.compile(r"^\|")


def rewritten(text):
    """Blank lines before lists and tables, which Python-Markdown needs, and one word behind each fence."""
    lines, within, before = [], False, ""
    for line in text.split("\n"):
        if FENCE.match(line):
            line = re.sub(r"^( *```\w+) \w+$", r"\1", line)
            within = not within
        elif not within:
            for kind in (ITEM, ROW):
                if kind.match(line) and before.strip() and not kind.match(before) and not before.startswith(" "):
                    lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines)


def heading_name(text, separator="-"):
    """The anchor of a heading, for the extension toc, which tells equal names apart by itself."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)
